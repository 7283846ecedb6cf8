import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, globSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildFunctions } from './build-functions.ts';

/** Makes `dist`, which is what the package ships: JavaScript, declarations, the migrations' SQL beside the code
 * that reads it, the console's page as it is, and the functions' bundles. */
const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

// The bundles stay until they are built anew: a synth may be reading them.
for (const entry of globSync('*', { cwd: dist })) {
  if (entry !== 'bundles') rmSync(join(dist, entry), { recursive: true, force: true });
}
// The compiler of this project's own node_modules, whatever else is on the path.
execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});
for (const file of globSync(['shared/**/*.sql', 'cli/console/page/*.{html,css,js,svg}'], { cwd: root })) {
  const target = join(dist, file);
  mkdirSync(dirname(target), { recursive: true });
  cpSync(join(root, file), target);
}
chmodSync(join(dist, 'cli/main.js'), 0o755);
await buildFunctions();
