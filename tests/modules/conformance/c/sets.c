/* What an owner is to have, and the plan of a pipeline. */
#include "conformance.h"

static cfgr_json map(const char *name) {
    return CFGR_OBJECT(
        {"apiVersion", cfgr_string("v1")},
        {"kind", cfgr_string("ConfigMap")},
        {"metadata", CFGR_OBJECT({"namespace", cfgr_string("shop")}, {"name", cfgr_string(name)})});
}

static void dependencies(cfgr_output *output) {
    cfgr_output_desired_entry(output, "a", map("a"));
    cfgr_output_desired_entry(output, "b", map("b"), .depends_on = CFGR_NAMES("a"));
    cfgr_output_desired_entry(output, "c", map("c"), .depends_on = CFGR_NAMES("a"));
    cfgr_output_desired_entry(output, "d", map("d"), .depends_on = CFGR_NAMES("b", "c"));
}

static void readiness(cfgr_output *output) {
    cfgr_output_desired_entry(output, "a", map("a"), .ready_when = cfgr_when_exists());
    cfgr_output_desired_entry(output, "b", map("b"), .ready_when = cfgr_when_observed());
    cfgr_output_desired_entry(output, "c", map("c"), .ready_when = cfgr_when_healthy());
    cfgr_output_desired_entry(output, "d", map("d"), .ready_when = cfgr_when("object.data.ready == 'yes'"),
                              .failed_when = "object.data.ready == 'never'", .timeout_ms = 90000);
}

static void policies(cfgr_output *output) {
    cfgr_output_desired_entry(output, "a", map("a"), .on_existing = CFGR_ON_EXISTING_REFUSE, .on_conflict = CFGR_ON_CONFLICT_FAIL,
                              .on_immutable = CFGR_ON_IMMUTABLE_FAIL, .on_delete = CFGR_ON_DELETE_WITH_OWNER);
    cfgr_output_desired_entry(output, "b", map("b"), .on_existing = CFGR_ON_EXISTING_ADOPT, .on_conflict = CFGR_ON_CONFLICT_FORCE,
                              .on_immutable = CFGR_ON_IMMUTABLE_RECREATE, .on_delete = CFGR_ON_DELETE_RETAIN);
    cfgr_output_desired_entry(output, "c", map("c"), .on_existing = CFGR_ON_EXISTING_CREATE_ONLY,
                              .on_delete = CFGR_ON_DELETE_ONLY_UNDER_WIPE_OUT,
                              .ignored_paths = CFGR_NAMES(".data.count", ".metadata.labels['a/b']"));
}

static void config(cfgr_output *output) {
    cfgr_app_conf level = cfgr_app_conf_key("web", "log.level");
    cfgr_app_conf elsewhere = cfgr_app_conf_key("web", "log.level", .namespace = "shop");
    cfgr_output_desired_entry(output, "pod", cfgr_entry_content(cfgr_pod_entry("shop", "web", .uid = "6e2d"), "a"));
    cfgr_output_desired_entry(output, "node", cfgr_entry_content(cfgr_node_entry("node-1"), "b"));
    cfgr_output_desired_entry(output, "namespace", cfgr_entry_content(cfgr_namespace_entry("shop"), "c"));
    cfgr_output_desired_entry(output, "workload", cfgr_entry_content(cfgr_workload_entry("shop", "Deployment", "web"), "d"));
    cfgr_output_desired_entry(output, "app-conf", cfgr_app_conf_content(level, "info"));
    cfgr_output_desired_entry(output, "app-conf-elsewhere", cfgr_app_conf_content(elsewhere, "é"));
    cfgr_output_desired_entry(output, "basic", cfgr_basic_content("region", "north", .partition = "team-a"));
    cfgr_output_desired_entry(output, "two-layers", cfgr_two_layers_content("teams", "red", ""));
}

static void contents_of_secrets(cfgr_output *output) {
    cfgr_json user = CFGR_OBJECT({"user", cfgr_string("a")});
    cfgr_output_desired_entry(output, "generated", cfgr_secret_content("db"));
    cfgr_output_desired_entry(output, "given", cfgr_secret_content_with("api", user));
    cfgr_output_desired_entry(output, "elsewhere", cfgr_secret_content("db", .partition = "team-a"));
}

static void empty(cfgr_output *output) {
    cfgr_output_desired(output, .allow_empty = true);
}

static void orders(cfgr_output *output) {
    cfgr_output_desired_entry(output, "a", map("a"));
    cfgr_output_desired_entry(output, "b", map("b"));
    cfgr_output_desired_entry(output, "c", map("c"));
    cfgr_output_desired(output, .provision = CFGR_GROUPS(CFGR_NAMES("a"), CFGR_NAMES("b", "c")),
                        .update = CFGR_GROUPS(CFGR_NAMES("c"), CFGR_NAMES("a")),
                        .terminate = CFGR_GROUPS(CFGR_NAMES("b"), CFGR_NAMES("a")));
}

static void policy(cfgr_output *output) {
    cfgr_output_desired_entry(output, "a", map("a"));
    cfgr_output_desired(output, .termination_policy = CFGR_TERMINATION_WIPE_OUT);
}

static void policy_path(cfgr_output *output) {
    cfgr_output_desired_entry(output, "a", map("a"));
    cfgr_output_desired(output, .termination_policy_at = ".spec.terminationPolicy");
}

static void pre_terminate(cfgr_output *output) {
    cfgr_output_desired_entry(output, "a", map("a"));
    cfgr_output_pre_terminate(output, "pod", cfgr_kubernetes_delete(CFGR_POD, "shop", "web"));
    cfgr_output_pre_terminate(output, "key", cfgr_basic_delete("region"), .depends_on = CFGR_NAMES("pod"),
                              .ready_when = cfgr_when_exists());
}

const cfgr_error *desired(const cfgr_input *input, cfgr_output *output) {
    static const struct {
        const char *name;
        void (*fill)(cfgr_output *output);
    } sets[] = {
        {"dependencies", dependencies}, {"readiness", readiness}, {"policies", policies}, {"config", config},
        {"secrets", contents_of_secrets}, {"empty", empty}, {"orders", orders}, {"policy", policy},
        {"policy-path", policy_path}, {"pre-terminate", pre_terminate},
    };
    const char *wanted;
    CFGR_TRY(parameter(input, "set", &wanted));
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        if (cfgr_equal(wanted, sets[i].name)) {
            sets[i].fill(output);
            return NULL;
        }
    }
    return cfgr_fatal(cfgr_concat("there is no set ", wanted));
}

/* The object with this member. */
static cfgr_json with_member(cfgr_json object, const char *key, cfgr_json value) {
    cfgr_members members = {0};
    for (size_t i = 0; i < object.count; i++) {
        cfgr_member member = cfgr_member_at(object, i);
        cfgr_members_add(&members, member.key, member.value);
    }
    cfgr_members_set(&members, key, value);
    return cfgr_object(&members);
}

/* The object with a label. */
static cfgr_json labelled(cfgr_json object) {
    cfgr_json metadata = cfgr_get(object, "metadata");
    cfgr_json labels = with_member(cfgr_get(metadata, "labels"), "planned", cfgr_string("yes"));
    return with_member(object, "metadata", with_member(metadata, "labels", labels));
}

/* Copies what the plan's set says besides its entries. */
static void plan_set(const cfgr_desired_set *set, cfgr_output *output) {
    cfgr_output_desired_with(output, set->options);
    for (size_t i = 0; i < set->pre_terminate.count; i++) {
        cfgr_output_add_pre_terminate(output, set->pre_terminate.items[i]);
    }
}

/* Copies an entry, and gives an object a label. */
static const cfgr_error *plan_entry(cfgr_desired_entry entry, cfgr_output *output) {
    if (entry.content.kind == CFGR_CONTENT_KUBERNETES) {
        cfgr_json object = cfgr_parse(entry.content.kubernetes);
        if (cfgr_is_absent(object)) {
            return cfgr_fatal("an object of the plan is no JSON");
        }
        entry.content = CFGR_CONTENT(labelled(object));
    }
    cfgr_output_add_desired_entry(output, entry);
    return NULL;
}

/* Passes on what is planned, gives each object a label, and removes what is called `old`. */
const cfgr_error *plan(const cfgr_input *input, cfgr_output *output) {
    if (input->plan == NULL) {
        cfgr_output_pass(output, "is-planned", cfgr_bool(false));
        return NULL;
    }
    cfgr_items seen = {0};
    for (size_t i = 0; i < input->plan->requests.count; i++) {
        const cfgr_request *request = &input->plan->requests.items[i];
        cfgr_items_add(&seen, cfgr_string(cfgr_concat("request ", request->name)));
        if (cfgr_equal(request->name, "old")) {
            cfgr_output_remove_from_plan(output, "old");
        } else {
            cfgr_output_add_request(output, *request);
        }
    }
    const cfgr_desired_set *set = &input->plan->desired;
    if (set->is_said) {
        plan_set(set, output);
    }
    for (size_t i = 0; i < set->entries.count; i++) {
        const cfgr_desired_entry *entry = &set->entries.items[i];
        cfgr_items_add(&seen, cfgr_string(cfgr_concat("entry ", entry->name)));
        if (cfgr_equal(entry->name, "old")) {
            cfgr_output_remove_from_plan(output, "old");
        } else {
            CFGR_TRY(plan_entry(*entry, output));
        }
    }
    cfgr_output_pass(output, "seen", cfgr_array(&seen));
    return NULL;
}

/* Reads before it plans. */
const cfgr_error *plan_reads(const cfgr_input *input, cfgr_output *output) {
    const cfgr_result *answer = cfgr_input_answer(input, "class");
    if (answer != NULL) {
        cfgr_output_pass(output, "found", cfgr_bool(answer->error == NULL));
        return NULL;
    }
    cfgr_output_read(output, "class", cfgr_basic_get("class"), .on_error = CFGR_CATCH_ERROR);
    cfgr_output_read(output, "pods", cfgr_kubernetes_list(CFGR_POD, "shop"));
    return NULL;
}

const cfgr_error *extension(const cfgr_input *input, cfgr_output *output) {
    (void)input;
    cfgr_json body = CFGR_OBJECT({"a", CFGR_ARRAY(cfgr_string("192.0.2.1"))});
    cfgr_output_request(output, "delete", cfgr_extension_request("dns", "delete", "example.org/www"));
    cfgr_output_request(output, "upsert", cfgr_extension_request_with("dns", "upsert", "example.org/é", body));
    return NULL;
}
