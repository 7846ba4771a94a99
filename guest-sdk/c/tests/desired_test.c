#include <string.h>

#include "configurator_test.h"
#include "tests.h"

static const cfgr_desired_entry *newest(const cfgr_output *output) {
    return &output->desired.entries.items[output->desired.entries.count - 1];
}

static void each_kind_of_content_is_an_entry(void) {
    cfgr_output output = {0};
    char name[] = "db";
    cfgr_output_desired_entry(&output, "object", CFGR_OBJECT({"kind", cfgr_string("ConfigMap")}));
    CFGR_EXPECT(newest(&output)->content.kind == CFGR_CONTENT_KUBERNETES);
    CFGR_EXPECT_TEXT(newest(&output)->content.kubernetes, "{\"kind\":\"ConfigMap\"}");

    cfgr_output_desired_entry(&output, "generated", cfgr_secret_content(name, .partition = name));
    strcpy(name, "no");
    CFGR_EXPECT(newest(&output)->content.kind == CFGR_CONTENT_SECRET && newest(&output)->content.secret.value == NULL);
    CFGR_EXPECT_TEXT(newest(&output)->content.secret.name, "db");
    CFGR_EXPECT_TEXT(newest(&output)->content.secret.partition, "db");
    cfgr_output_desired_entry(&output, "given", cfgr_secret_content_with("db", cfgr_null()));
    CFGR_EXPECT_TEXT(newest(&output)->content.secret.value, "null");
    CFGR_EXPECT(newest(&output)->content.secret.partition == NULL);

    cfgr_output_desired_entry(&output, "copy", output.desired.entries.items[0].content);
    CFGR_EXPECT_TEXT(newest(&output)->content.kubernetes, "{\"kind\":\"ConfigMap\"}");
    CFGR_EXPECT(output.desired.is_said && output.desired.entries.count == 4);
}

static void each_key_of_the_config_store_is_a_content(void) {
    cfgr_config_content entry = cfgr_entry_content(cfgr_workload_entry("shop", "Deployment", "web", .uid = "u"), "1");
    CFGR_EXPECT(entry.kind == CFGR_CONFIG_ENTRY && entry.entry.type == CFGR_ENTRY_WORKLOAD && entry.partition == NULL);
    CFGR_EXPECT_TEXT(entry.entry.workload_kind, "Deployment");
    CFGR_EXPECT_TEXT(entry.entry.uid, "u");
    CFGR_EXPECT_TEXT(entry.value, "1");
    cfgr_config_content key = cfgr_app_conf_content(cfgr_app_conf_key("web-1", "tier", .namespace = "shop"), "gold");
    CFGR_EXPECT(key.kind == CFGR_CONFIG_APP_CONF);
    CFGR_EXPECT_TEXT(key.app_conf.namespace, "shop");
    CFGR_EXPECT_TEXT(key.app_conf.key, "tier");
    cfgr_config_content basic = cfgr_basic_content("motd", "hello", .partition = "team-a");
    CFGR_EXPECT(basic.kind == CFGR_CONFIG_BASIC);
    CFGR_EXPECT_TEXT(basic.basic, "motd");
    CFGR_EXPECT_TEXT(basic.partition, "team-a");
    cfgr_config_content leaf = cfgr_two_layers_content("teams", "red", "");
    CFGR_EXPECT(leaf.kind == CFGR_CONFIG_TWO_LAYERS);
    CFGR_EXPECT_TEXT(leaf.two_layers.third, "red");
    CFGR_EXPECT_TEXT(leaf.value, "");
    CFGR_EXPECT(cfgr_content_of_config(leaf).kind == CFGR_CONTENT_CONFIG);
}

static void options_of_an_entry_are_said_by_name(void) {
    cfgr_output output = {0};
    cfgr_output_desired_entry(&output, "a", CFGR_OBJECT());
    const cfgr_desired_entry *plain = newest(&output);
    CFGR_EXPECT(plain->depends_on.count == 0 && plain->ready_when.kind == CFGR_READINESS_UNSAID && plain->failed_when == NULL);
    CFGR_EXPECT(plain->timeout_ms == 0 && plain->on_existing == CFGR_ON_EXISTING_UNSAID && plain->on_conflict == CFGR_ON_CONFLICT_UNSAID);
    CFGR_EXPECT(plain->on_immutable == CFGR_ON_IMMUTABLE_UNSAID && plain->on_delete == CFGR_ON_DELETE_UNSAID);
    char path[] = ".spec.replicas";
    cfgr_output_desired_entry(&output, "b", CFGR_OBJECT(), .depends_on = CFGR_NAMES("a"), .ready_when = cfgr_when_healthy(),
                              .failed_when = path, .timeout_ms = 1500, .on_existing = CFGR_ON_EXISTING_ADOPT,
                              .on_conflict = CFGR_ON_CONFLICT_FORCE, .on_immutable = CFGR_ON_IMMUTABLE_RECREATE,
                              .ignored_paths = CFGR_NAMES(path), .on_delete = CFGR_ON_DELETE_RETAIN);
    strcpy(path, "no");
    const cfgr_desired_entry *full = newest(&output);
    CFGR_EXPECT_TEXT(full->name, "b");
    CFGR_EXPECT_TEXT(full->depends_on.items[0], "a");
    CFGR_EXPECT_TEXT(full->failed_when, ".spec.replicas");
    CFGR_EXPECT_TEXT(full->ignored_paths.items[0], ".spec.replicas");
    CFGR_EXPECT(full->ready_when.kind == CFGR_READINESS_HEALTHY && full->timeout_ms == 1500 && full->on_delete == CFGR_ON_DELETE_RETAIN);
}

static void options_of_a_set_are_said_by_name(void) {
    cfgr_output output = {0};
    CFGR_EXPECT(!output.desired.is_said);
    cfgr_output_desired(&output, .allow_empty = true, .termination_policy = CFGR_TERMINATION_WIPE_OUT);
    CFGR_EXPECT(output.desired.is_said && output.desired.options.allow_empty && output.desired.entries.count == 0);
    CFGR_EXPECT(output.desired.options.termination_policy == CFGR_TERMINATION_WIPE_OUT);
    char name[] = "c";
    cfgr_output_desired(&output, .termination_policy_at = ".spec.terminationPolicy",
                        .provision = CFGR_GROUPS(CFGR_NAMES("a"), CFGR_NAMES("b", name)), .terminate = CFGR_GROUPS(CFGR_NAMES(name)));
    strcpy(name, "-");
    const cfgr_desired_options *options = &output.desired.options;
    CFGR_EXPECT(!options->allow_empty && options->termination_policy == CFGR_TERMINATION_UNSAID && options->update.count == 0);
    CFGR_EXPECT(options->provision.count == 2 && options->provision.items[1].count == 2 && options->terminate.count == 1);
    CFGR_EXPECT_TEXT(options->provision.items[1].items[1], "c");
    CFGR_EXPECT_TEXT(options->termination_policy_at, ".spec.terminationPolicy");
}

static void a_request_before_a_deletion_makes_a_set(void) {
    cfgr_output output = {0};
    cfgr_output_pre_terminate(&output, "key", cfgr_basic_delete("k"), .depends_on = CFGR_NAMES("pod"));
    CFGR_EXPECT(output.desired.is_said && output.desired.pre_terminate.count == 1 && output.requests.count == 0);
    CFGR_EXPECT_TEXT(output.desired.pre_terminate.items[0].depends_on.items[0], "pod");
}

void test_desired(void) {
    each_kind_of_content_is_an_entry();
    each_key_of_the_config_store_is_a_content();
    options_of_an_entry_are_said_by_name();
    options_of_a_set_are_said_by_name();
    a_request_before_a_deletion_makes_a_set();
}
