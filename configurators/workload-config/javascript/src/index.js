// Configures Deployments in batches, as the module in Rust in the folder above does: see its README.

import { handlers } from 'configurator-sdk';

import { cleanup } from './cleanup.js';
import { root } from './root.js';
import { write } from './write.js';

export default handlers({
  root: {
    run: root,
    accepts: 'batch',
    description: 'Asks for the Namespaces and stored configuration of Deployments.',
  },
  write: {
    run: write,
    accepts: 'batch',
    description: 'Writes the configuration of Deployments that has changed.',
  },
  cleanup: {
    run: cleanup,
    accepts: 'batch',
    description: 'Deletes the configuration of Deployments that are gone.',
  },
});
