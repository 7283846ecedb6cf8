import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * The run's own folder for temporary files, gone with the run: whatever a library leaves behind (a CDK app without an
 * output folder of its own writes its assemblies there and never removes them) is gone too.
 */
export default function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'relaybox-tests-'));
  // The database server runs as a user of its own, who must be able to enter.
  chmodSync(folder, 0o755);
  const before = process.env['TMPDIR'];
  process.env['TMPDIR'] = folder;
  return () => {
    if (before === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = before;
    rmSync(folder, { recursive: true, force: true });
  };
}
