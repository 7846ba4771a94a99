// The root phase.

import { Output, request } from 'configurator-sdk';
import { NAMESPACE } from 'configurator-sdk/kubernetes';

import { Identity } from './deployment.js';
import { byText } from './order.js';

/** The key under which the Namespaces arrive together, each once. */
export const NAMESPACES = 'namespaces';
/** The key under which the stored entries arrive together, one for each Deployment. */
export const ENTRIES = 'entries';

/** The name of the request for a Namespace. */
export function namespaceRequest(name) {
  return `namespace/${name}`;
}

/**
 * Asks for each Namespace of the batch once, and for the entry of each Deployment.
 *
 * Failures join their groups. An entry that is absent is the ordinary case of a new Deployment.
 */
export function root(input) {
  const identities = input.objects.map(({ object }) => new Identity(object));
  const namespaces = new Set(identities.map(({ namespace }) => namespace));
  const output = new Output();
  for (const name of [...namespaces].sort(byText)) {
    output.request(request(namespaceRequest(name), NAMESPACE.get('', name, { cached: true }), { groupBy: NAMESPACES }));
  }
  for (const identity of identities) {
    const name = identity.requestName('entry');
    output.request(request(name, identity.entry.get(), { groupBy: ENTRIES, of: identity.objectRef }));
  }
  return output;
}
