// What is stored of a Deployment.

import { needed } from './deployment.js';
import { byText } from './order.js';

/** What the key of an annotation begins with, to be configuration. */
const PREFIX = 'config.configurator.dev/';

/** The value of a Deployment's entry, with the configuration of these annotations. The same ones give the same text. */
export function summary(deployment, ...layers) {
  const spec = needed(deployment, 'spec');
  const pod = needed(needed(spec, 'template'), 'spec');
  const replicas = spec.replicas ?? 1;
  const account = JSON.stringify(pod.serviceAccountName ?? 'default');
  const containers = JSON.stringify((pod.containers ?? []).map(container));
  return `{"replicas":${replicas},"serviceAccount":${account},"containers":${containers},"config":${config(layers)}}`;
}

/** Written by hand: in an object, keys that look like numbers would come first, whatever their order. */
function config(layers) {
  const all = new Map();
  for (const [key, value] of layers.flatMap((annotations) => Object.entries(annotations ?? {}))) {
    if (key.startsWith(PREFIX)) {
      all.set(key.slice(PREFIX.length), value);
    }
  }
  const sorted = [...all].sort(([a], [b]) => byText(a, b));
  return `{${sorted.map((field) => field.map((text) => JSON.stringify(text)).join(':')).join(',')}}`;
}

/** Of the environment only names are kept: values may be secrets. */
function container(one) {
  return {
    name: needed(one, 'name'),
    image: one.image ?? '',
    ports: (one.ports ?? []).map((port) => needed(port, 'containerPort')),
    env: (one.env ?? []).map((variable) => needed(variable, 'name')),
  };
}
