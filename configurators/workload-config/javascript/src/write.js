// The write phase.

import { HandlerError, Output, request } from 'configurator-sdk';

import { Identity } from './deployment.js';
import { ENTRIES, NAMESPACES, namespaceRequest } from './root.js';
import { summary } from './summary.js';

/**
 * Writes the entry of each Deployment of the batch whose summary is not what is stored.
 *
 * A Namespace that could not be read is an error, which a retry may cure: without it a Deployment would lose a layer.
 */
export function write(input) {
  const annotations = new Map(input.groupOpt(NAMESPACES).map((one) => [one.name, one.found?.metadata.annotations]));
  const entries = new Map(input.groupOpt(ENTRIES).map((one) => [one.name, one]));
  const output = new Output();
  for (const { object } of input.objects) {
    const identity = new Identity(object);
    const inherited = annotations.get(namespaceRequest(identity.namespace));
    const value = summary(object, inherited, identity.annotations);
    if (stored(entries.get(identity.requestName('entry'))) !== value) {
      const name = identity.requestName('config');
      output.request(request(name, identity.entry.update(value), { of: identity.objectRef }));
    }
  }
  return output;
}

/** The stored summary. Where it cannot be read it is written anew. */
function stored(entry) {
  try {
    return entry?.object.value;
  } catch (error) {
    if (error instanceof HandlerError) {
      return undefined;
    }
    throw error;
  }
}
