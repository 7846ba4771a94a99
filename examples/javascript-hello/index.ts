// Gives every Namespace a ConfigMap `hello`.

import { HandlerError, handlers, type Input, Output, request } from 'configurator-sdk';
import { CONFIG_MAP } from 'configurator-sdk/kubernetes';

interface Namespace {
  metadata?: { name?: string };
}

export function root(input: Input<Namespace>): Output {
  const name = input.object.metadata?.name;
  if (name === undefined) {
    throw new HandlerError('the object has no name', { fatal: true });
  }
  const hello = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: name, name: 'hello' },
    data: { greeting: `hello, ${name}` },
  };
  return new Output(request('hello', CONFIG_MAP.apply(name, 'hello', hello)));
}

export default handlers({ root: { run: root, description: 'Gives a Namespace its ConfigMap.' } });
