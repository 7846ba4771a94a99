#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "configurator_test.h"
#include "tests.h"

/* The line of a request. */
#define check(what, expected)                                    \
    do {                                                         \
        cfgr_output output = {0};                                \
        cfgr_output_request(&output, "r", what);                 \
        CFGR_EXPECT_TEXT(cfgr_test_lines(&output), expected "\n"); \
    } while (0)

static void each_verb_of_kubernetes_has_its_options(void) {
    check(cfgr_kubernetes_get(CFGR_NODE, NULL, "n-1", .cached = true), "r: kubernetes get nodes n-1, cached");
    check(cfgr_kubernetes_list(CFGR_POD, NULL, .labels = "a=b", .fields = "spec.nodeName=n-1"),
          "r: kubernetes list pods, fields spec.nodeName=n-1, labels a=b");
    check(cfgr_kubernetes_list(CFGR_POD, "shop"), "r: kubernetes list pods shop/");
    check(cfgr_kubernetes_patch(CFGR_DEPLOYMENT, "shop", "web", CFGR_ARRAY(), .type = CFGR_PATCH_JSON, .subresource = "scale",
                                .resource_version = "7"),
          "r: kubernetes json-patch deployments.apps/scale shop/web [], resource-version 7");
    check(cfgr_kubernetes_create(CFGR_POD, "shop", "web", cfgr_raw("{}"), .must_not_exist = true),
          "r: kubernetes create pods shop/web {}, no precheck");
    check(cfgr_kubernetes_replace(CFGR_POD, "shop", "web", CFGR_OBJECT(), .uid = "u"), "r: kubernetes replace pods shop/web {}, uid u");
    check(cfgr_kubernetes_apply(CFGR_POD, "shop", "web", CFGR_OBJECT(), .force = true), "r: kubernetes apply pods shop/web {}, forced");
    check(cfgr_kubernetes_delete(CFGR_POD, "shop", "web", .propagation = CFGR_PROPAGATION_ORPHAN, .uid = "u"),
          "r: kubernetes delete pods shop/web, propagation orphan, uid u");
    CFGR_EXPECT_TEXT(cfgr_api_version(CFGR_POD), "v1");
    CFGR_EXPECT_TEXT(cfgr_api_version(CFGR_CRON_JOB), "batch/v1");
}

static void each_entry_of_the_config_store_has_its_place(void) {
    check(cfgr_entry_get(cfgr_pod_entry("shop", "web-1", .uid = "u")), "r: config get pod shop/web-1 (u)");
    check(cfgr_entry_create(cfgr_node_entry("n-1"), "1"), "r: config create node n-1 = 1");
    check(cfgr_entry_update(cfgr_namespace_entry("shop"), "1"), "r: config update namespace shop = 1");
    check(cfgr_entry_delete(cfgr_workload_entry("shop", "Deployment", "web")), "r: config delete workload shop/Deployment/web");
    check(cfgr_app_conf_create(cfgr_app_conf_key("web-1", "tier"), "gold"), "r: config create app-conf web-1 tier = gold");
    check(cfgr_app_conf_update(cfgr_app_conf_key("web-1", "tier", .namespace = "shop"), "gold"),
          "r: config update app-conf shop/web-1 tier = gold");
    check(cfgr_app_conf_delete(cfgr_app_conf_key("web-1", "tier")), "r: config delete app-conf web-1 tier");
    check(cfgr_basic_get("motd"), "r: config get basic motd");
    check(cfgr_basic_put("motd", "hello"), "r: config put basic motd = hello");
    check(cfgr_basic_delete("motd"), "r: config delete basic motd");
    check(cfgr_two_layers_get("a", "b"), "r: config get two-layers a b");
    check(cfgr_two_layers_create("a", "b", "1"), "r: config create two-layers a b = 1");
    check(cfgr_two_layers_update("a", "b", "1"), "r: config update two-layers a b = 1");
    check(cfgr_two_layers_delete("a", "b"), "r: config delete two-layers a b");
}

static void a_transaction_keeps_the_order(void) {
    check(CFGR_TRANSACTION(cfgr_basic_put("b", "1"), cfgr_basic_delete("a")),
          "r: config transaction\n  config put basic b = 1\n  config delete basic a");
    cfgr_transaction grown = {0};
    for (int i = 0; i < 20; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        cfgr_transaction_add(&grown, cfgr_basic_get(key));
    }
    CFGR_EXPECT(grown.count == 20);
    CFGR_EXPECT_TEXT(grown.operations[0].basic, "k0");
    CFGR_EXPECT_TEXT(grown.operations[19].basic, "k19");
}

static void secrets_and_endpoints_are_asked(void) {
    check(cfgr_secret_get("db"), "r: secret get db");
    check(cfgr_secret_create("db"), "r: secret create db");
    check(cfgr_secret_create_with("db", cfgr_string("hush")), "r: secret create db = (a value)");
    check(cfgr_secret_update("db", 3), "r: secret update db, version 3");
    check(cfgr_secret_update_with("db", 0, cfgr_string("hush")), "r: secret update db = (a value), version 0");
    check(cfgr_secret_delete("db"), "r: secret delete db");
    check(cfgr_http_get("https://a.example/"), "r: http GET https://a.example/");

    cfgr_http_request post =
        cfgr_http_post("https://a.example/", .headers = CFGR_HEADERS({"a", "1"}, {"b", "2"}), .body = "hello");
    CFGR_EXPECT(post.headers.count == 2 && post.body_size == 5 && memcmp(post.body, "hello", 5) == 0);
    CFGR_EXPECT_TEXT(post.headers.items[1].value, "2");
    cfgr_http_request put = cfgr_http("PUT", "https://a.example/", .bytes = "\0\xff", .size = 2);
    CFGR_EXPECT(put.body_size == 2 && memcmp(put.body, "\0\xff", 2) == 0);
    CFGR_EXPECT(cfgr_http_post("https://a.example/").body == NULL);
}

static void extensions_are_asked(void) {
    char target[] = "example.org/www";
    cfgr_extension upsert = cfgr_extension_request_with("dns", "upsert", target, CFGR_OBJECT({"a", cfgr_string("192.0.2.1")}));
    strcpy(target, "no");
    check(upsert, "r: extension dns upsert example.org/www {\"a\":\"192.0.2.1\"}");
    check(cfgr_extension_request("dns", "delete", "example.org/www"), "r: extension dns delete example.org/www");
}

/* Each makes a secret with a value that is absent. */
static void create_without_value(void) {
    cfgr_secret_create_with("db", cfgr_get(CFGR_OBJECT(), "password"));
}

static void update_without_value(void) {
    cfgr_secret_update_with("db", 1, cfgr_get(CFGR_OBJECT(), "password"));
}

static void content_without_value(void) {
    cfgr_secret_content_with("db", cfgr_get(CFGR_OBJECT(), "password"));
}

static void a_secret_with_a_value_that_is_absent_is_a_mistake(void) {
    void (*const mistakes[])(void) = {create_without_value, update_without_value, content_without_value};
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        pid_t child = fork();
        if (child == 0) {
            /* Its last message must not appear among the lines of the test. */
            close(STDERR_FILENO);
            mistakes[i]();
            _exit(0);
        }
        int status = 0;
        CFGR_EXPECT(waitpid(child, &status, 0) == child);
        CFGR_EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
    CFGR_EXPECT_TEXT(cfgr_secret_create_with("db", cfgr_null()).value, "null");
}

static void options_are_said_by_name(void) {
    cfgr_output output = {0};
    char name[] = "a";
    cfgr_output_request(&output, name, cfgr_basic_get("k"), .group_by = "g", .of = {"shop", "web"}, .on_error = CFGR_DROP_ERROR,
                        .depends_on = CFGR_NAMES("x", "y"), .ready_when = cfgr_when("object.ready"), .timeout_ms = 1500,
                        .partition = "team-a", .is_declarative = true, .bootstrap_dep = true, .once = true);
    strcpy(name, "b");
    cfgr_output_request(&output, name, cfgr_basic_get("k"));
    CFGR_EXPECT_TEXT(cfgr_test_lines(&output),
                     "a: config get basic k, group-by g, of shop/web, on-error drop-error, depends-on x, depends-on y, ready-when object.ready, timeout 1500 ms, "
                     "partition team-a, declarative, bootstrap-dep, once\nb: config get basic k\n");
    CFGR_EXPECT(output.requests.items[0].ready_when.kind == CFGR_READINESS_EXPRESSION);
    CFGR_EXPECT(output.requests.items[1].ready_when.kind == CFGR_READINESS_UNSAID);
    CFGR_EXPECT(cfgr_when_exists().kind == CFGR_READINESS_EXISTS && cfgr_when_observed().kind == CFGR_READINESS_OBSERVED);
    CFGR_EXPECT(cfgr_when_healthy().kind == CFGR_READINESS_HEALTHY);
}

void test_requests(void) {
    each_verb_of_kubernetes_has_its_options();
    each_entry_of_the_config_store_has_its_place();
    a_transaction_keeps_the_order();
    secrets_and_endpoints_are_asked();
    extensions_are_asked();
    a_secret_with_a_value_that_is_absent_is_a_mistake();
    options_are_said_by_name();
}
