#include "configurator_test.h"
#include "tests.h"

static void a_set_has_a_line_for_each_entry(void) {
    cfgr_output output = {0};
    cfgr_json object = CFGR_OBJECT({"kind", cfgr_string("ConfigMap")}, {"metadata", CFGR_OBJECT({"name", cfgr_string("a")})});
    cfgr_output_desired_entry(&output, "a", object);
    cfgr_output_desired_entry(&output, "b", object, .depends_on = CFGR_NAMES("a", "c"), .ready_when = cfgr_when("object.data.ready"),
                              .failed_when = "object.data.failed", .timeout_ms = 2000, .on_existing = CFGR_ON_EXISTING_CREATE_ONLY,
                              .on_conflict = CFGR_ON_CONFLICT_FORCE, .on_immutable = CFGR_ON_IMMUTABLE_RECREATE,
                              .ignored_paths = CFGR_NAMES(".spec.replicas"), .on_delete = CFGR_ON_DELETE_ONLY_UNDER_WIPE_OUT);
    cfgr_output_desired_entry(&output, "c", cfgr_entry_content(cfgr_workload_entry("shop", "Deployment", "web", .uid = "u"), "1"));
    cfgr_output_desired_entry(&output, "d", cfgr_app_conf_content(cfgr_app_conf_key("web", "tier"), "gold"));
    cfgr_output_desired_entry(&output, "e", cfgr_basic_content("k", "v", .partition = "p"));
    cfgr_output_desired_entry(&output, "f", cfgr_two_layers_content("a", "b", "2"));
    cfgr_output_desired_entry(&output, "g", cfgr_secret_content("db"));
    cfgr_output_desired_entry(&output, "h", cfgr_secret_content_with("api", cfgr_string("word")));
    cfgr_output_desired(&output, .allow_empty = true, .termination_policy = CFGR_TERMINATION_KEEP_VOLUMES,
                        .provision = CFGR_GROUPS(CFGR_NAMES("a"), CFGR_NAMES("b", "c")),
                        .terminate = CFGR_GROUPS(CFGR_NAMES("b"), CFGR_NAMES("a")));
    cfgr_output_pre_terminate(&output, "drain", cfgr_basic_delete("k"));
    cfgr_output_remove_from_plan(&output, "old");
    cfgr_output_read(&output, "class", cfgr_basic_get("class"));
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output),
                     "read class: config get basic class\n"
                     "desired a: kubernetes {\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}\n"
                     "desired b: kubernetes {\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}, depends-on a, depends-on c, "
                     "ready-when object.data.ready, failed-when object.data.failed, timeout 2000 ms, on-existing create-only, "
                     "on-conflict force, on-immutable recreate, ignores .spec.replicas, on-delete only-under-wipe-out\n"
                     "desired c: config workload shop/Deployment/web (u) = 1\n"
                     "desired d: config app-conf web tier = gold\n"
                     "desired e: config basic k = v, partition p\n"
                     "desired f: config two-layers a b = 2\n"
                     "desired g: secret db\n"
                     "desired h: secret api = (a value)\n"
                     "desired set: allow-empty, termination-policy keep-volumes, provision a | b c, terminate b | a\n"
                     "pre-terminate drain: config delete basic k\n"
                     "remove-from-plan old\n");
}

static void a_set_without_options_has_no_line_for_them(void) {
    cfgr_output output = {0};
    cfgr_output_desired_entry(&output, "a", cfgr_secret_content("db"));
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output), "desired a: secret db\n");
}

static void a_path_replaces_the_termination_policy(void) {
    cfgr_output output = {0};
    cfgr_output_desired(&output, .termination_policy = CFGR_TERMINATION_WIPE_OUT, .termination_policy_at = ".spec.policy",
                        .update = CFGR_GROUPS(CFGR_NAMES("a", "b")));
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output), "desired set: termination-policy at .spec.policy, update a b\n");
}

void test_desired_lines(void) {
    a_set_has_a_line_for_each_entry();
    a_set_without_options_has_no_line_for_them();
    a_path_replaces_the_termination_policy();
}
