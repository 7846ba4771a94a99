// Makes a module with the runtime of Firefox of a file that has the handlers and the folder of the SDK.

import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import { componentize } from '@bytecodealliance/componentize-js';
import esbuild from 'esbuild';

const [handlers, sdk, witPath, output] = process.argv.slice(2);

const entry = `
import * as host from 'configurator:handler/log@0.1.0';
import { component, connect } from 'configurator-sdk/component';
import handlers from ${JSON.stringify(handlers)};
connect(host.log);
export const handler = component(handlers);
`;
const work = await mkdtemp(path.join(os.tmpdir(), 'starlingmonkey-'));
try {
  await symlink(sdk, path.join(work, 'configurator-sdk'), 'junction');
  const sourcePath = path.join(work, 'bundle.js');
  await esbuild.build({
    stdin: { contents: entry, resolveDir: path.dirname(handlers) },
    bundle: true,
    external: ['configurator:*'],
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    nodePaths: [work],
    outfile: sourcePath,
    logLevel: 'warning',
  });
  const disableFeatures = ['http', 'fetch-event'];
  const { component } = await componentize({ sourcePath, witPath, worldName: 'configurator', disableFeatures });
  await writeFile(output, component);
} finally {
  await rm(work, { recursive: true, force: true });
}
