/*
 * Configures Deployments in batches; the same as the module in Rust, of which the README tells.
 *
 * Every handler is idempotent, and a Deployment whose entry is as it should be costs one read and no write.
 */
#include "workload_config.h"

CFGR_MODULE(
    {"root", root, .accepts = CFGR_ACCEPTS_BATCH, .description = "Asks for the Namespaces and stored configuration of Deployments."},
    {"write", write_entries, .accepts = CFGR_ACCEPTS_BATCH, .description = "Writes the configuration of Deployments that has changed."},
    {"cleanup", cleanup, .accepts = CFGR_ACCEPTS_BATCH, .description = "Deletes the configuration of Deployments that are gone."});
