// Bundles a package's handlers with the entry of a module, and makes the component.

import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';

import { componentize } from 'componentize-qjs';
import esbuild from 'esbuild';

const [folder, main, witPath, world, work, output] = process.argv.slice(2);

const entry = `
import * as host from 'configurator:handler/log@0.1.0';
import { component, connect } from 'configurator-sdk/component';
import handlers from ${JSON.stringify(main)};
connect(host.log);
export const handler = component(handlers);
`;
const bundle = path.join(work, 'bundle.js');
try {
  await esbuild.build({
    stdin: { contents: entry, resolveDir: folder, sourcefile: 'entry.js' },
    absWorkingDir: folder,
    bundle: true,
    external: ['configurator:*'],
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    target: 'es2023',
    nodePaths: [await linked()],
    outfile: bundle,
    logLevel: 'warning',
  });
} catch (error) {
  // What is wrong was written already.
  if (!error.errors) {
    console.error(error);
  }
  process.exit(1);
}
try {
  const jsSource = await readFile(bundle, 'utf8');
  const { component } = await componentize({ jsSource, witPath, world, sync: true });
  await writeFile(output, component);
} catch (error) {
  // It says where in the bundle; where in the script is of no use.
  console.error(error.message);
  process.exit(1);
}

/** A folder of links to the packages that are dependencies by their folder, so that these need not be installed. */
async function linked() {
  const links = path.join(work, 'linked');
  await rm(links, { recursive: true, force: true });
  const { dependencies = {} } = JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8'));
  for (const [name, where] of Object.entries(dependencies)) {
    if (where.startsWith('file:')) {
      const link = path.join(links, name);
      await mkdir(path.dirname(link), { recursive: true });
      await symlink(path.resolve(folder, where.slice('file:'.length)), link, 'junction');
    }
  }
  return links;
}
