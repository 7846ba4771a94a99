// The phase of Deployments that are gone. It needs their names, namespaces and uids, and nothing else of them.

import { Output, request } from 'configurator-sdk';

import { Identity } from './deployment.js';

/** Deletes the entry of each Deployment of the batch. That of a newer Deployment of the same name has another uid, and stays. */
export function cleanup(input) {
  const output = new Output();
  for (const { object } of input.objects) {
    const identity = new Identity(object);
    output.request(request(identity.requestName('config'), identity.entry.delete(), { of: identity.objectRef }));
  }
  return output;
}
