// The parts of a Deployment that matter here.

import { HandlerError } from 'configurator-sdk';
import { Entry } from 'configurator-sdk/configstore';

/** A field that every object of the API has. A fatal error where it does not: no retry brings it. */
export function needed(document, name) {
  const value = document?.[name];
  if (value === undefined || value === null) {
    throw new HandlerError(`the object has no \`${name}\``, { fatal: true });
  }
  return value;
}

/** What every object has, also one of which only the identity is known. */
export class Identity {
  constructor(object) {
    const metadata = needed(object, 'metadata');
    this.name = needed(metadata, 'name');
    this.namespace = needed(metadata, 'namespace');
    this.uid = needed(metadata, 'uid');
    this.annotations = metadata.annotations;
  }

  /** The object, as requests name it. */
  get objectRef() {
    return { namespace: this.namespace, name: this.name };
  }

  /** Its entry in the config store. */
  get entry() {
    return Entry.workload(this.namespace, 'Deployment', this.name, { uid: this.uid });
  }

  /** The name of a request about it: no two of a batch share one, because no two objects share namespace and name. */
  requestName(what) {
    return `${what}/${this.namespace}/${this.name}`;
  }
}
