// Batches.

import { Output, request } from 'configurator-sdk';
import { Entry } from 'configurator-sdk/configstore';

/** Of each object: a request, a status and an Event. */
export function batch(input) {
  const output = new Output();
  for (const { object, event } of input.objects) {
    const { namespace, name, uid } = object.metadata;
    const of = { namespace, name };
    output
      .request(request(`${namespace}/${name}`, Entry.pod(namespace, name, { uid }).update('1'), { of }))
      .status({ seen: event }, { of })
      .event('Seen', `${name} was ${event}`, { of });
  }
  return output;
}

export function either(input) {
  return new Output().pass('objects', input.objects.length);
}
