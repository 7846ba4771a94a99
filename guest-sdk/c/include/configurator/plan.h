/*
 * The plan of a pipeline. A handler puts what it changes into its output, where it replaces what has the same name in the plan:
 *
 *     cfgr_request changed = input->plan->requests.items[0];
 *     changed.timeout_ms = 1500;
 *     cfgr_output_add_request(output, changed);
 */
#ifndef CONFIGURATOR_PLAN_H
#define CONFIGURATOR_PLAN_H

#include "compiler.h"
#include "desired.h"
#include "request.h"

/* What the handlers of a pipeline have planned so far. The host carries it out when the last one has returned. */
typedef struct cfgr_plan {
    cfgr_requests requests;
    cfgr_execute_strategy execute_strategy;
    cfgr_batch_error_strategy batch_error_strategy;
    cfgr_desired_set desired;
} cfgr_plan;

#endif
