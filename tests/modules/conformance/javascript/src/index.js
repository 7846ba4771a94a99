// What every SDK must be able to say and read, as the module in Rust beside this one says it.

import { handlers } from 'configurator-sdk';

import { batch, either } from './batch.js';
import { deep, large, nestedJson, numbers, object, unicode } from './documents.js';
import { deletes, patches, reads, types, writes } from './kubernetes.js';
import { chance, clock, error, lines, outcome, panic, random, statuses } from './outcomes.js';
import { args, context, groups, read, results, state } from './reading.js';
import { endpoints, graph, options, strategy } from './requests.js';
import { desired, extension, plan, planReads } from './sets.js';
import { allOrNothing, appConf, basic, entries, secrets, twoLayers } from './stores.js';

export default handlers({
  'kubernetes-reads': { run: reads, description: 'Gets and lists.' },
  'kubernetes-writes': { run: writes, description: 'Creates, replaces and applies.' },
  'kubernetes-patches': { run: patches, description: 'Patches of every type.' },
  'kubernetes-deletes': { run: deletes, description: 'Deletes of every policy.' },
  'kubernetes-types': { run: types, description: 'Every type that the SDK names.' },
  'config-entries': { run: entries, description: 'Entries of every type.' },
  'config-app-conf': { run: appConf, description: 'Application configuration.' },
  'config-basic': { run: basic, description: 'Plain keys.' },
  'config-two-layers': { run: twoLayers, description: 'Leaves under two levels.' },
  'config-transaction': { run: allOrNothing, description: 'All or nothing.' },
  secrets: {
    run: secrets,
    description: 'Secrets.',
    capabilities: { secretstore: [{ names: ['*'], verbs: ['get', 'create', 'update', 'delete'] }] },
  },
  http: { run: endpoints, description: 'HTTP endpoints.' },
  options: { run: options, description: 'What every request can have.' },
  strategy: { run: strategy, description: 'Orders of execution.' },
  graph: { run: graph, description: 'Requests that depend on one another.' },
  object: { run: object, description: 'Hands the object on, read and untouched.' },
  numbers: { run: numbers, description: 'Reads numbers.' },
  unicode: { run: unicode, description: 'Texts of all kinds.' },
  deep: { run: deep, description: 'A deep document.' },
  large: { run: large, description: 'A large document.' },
  results: { run: results, description: 'Reads results.' },
  groups: { run: groups, description: 'Reads groups of results.' },
  reads: { run: read, accepts: 'either', description: 'Reads in one of several ways.' },
  'nested-json': { run: nestedJson, description: 'Puts a document into another.' },
  arguments: { run: args, description: 'Reads and hands on arguments.' },
  context: { run: context, description: 'Reads the facts of the call.' },
  state: { run: state, description: 'Reads what it left behind.', view: 'check-list' },
  statuses: { run: statuses, description: 'Statuses and Events.' },
  error: { run: error, description: 'Errors of all kinds.', parametersSchema: { type: 'object' } },
  panic: { run: panic, description: 'Fails as no handler should.' },
  outcome: { run: outcome, description: 'Every way to end.', view: 'object-detail' },
  desired: { run: desired, description: 'All that an owner is to have.' },
  plan: { run: plan, description: 'Changes the plan of a pipeline.' },
  'plan-reads': { run: planReads, description: 'Reads before it plans.' },
  extension: { run: extension, description: 'Requests to an extension.' },
  log: { run: lines, description: 'Logs at every level.' },
  clock: { run: clock, description: "The language's clock." },
  chance: { run: chance, description: 'Numbers made of the seed.' },
  random: { run: random, description: "A number by the language's generator." },
  batch: { run: batch, accepts: 'batch', description: 'Something for each object.' },
  either: { run: either, accepts: 'either', description: 'Counts objects.' },
});
