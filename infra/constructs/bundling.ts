/** How a function is bundled, Relaybox's own and the handlers alike: one ES module with all that it uses. */
export const bundlingOptions = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  // Packages that bring ES modules are smaller so: what isn't used falls out.
  mainFields: ['module', 'main'],
  // CommonJS packages, as database drivers are, call `require`, which an ES module doesn't have.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
  },
  // An optional part of pg that needs a native build.
  external: ['pg-native'],
  // An error's name is what a person sees of it first: in the log, in Lambda's answer, in a deployment's event.
  keepNames: true,
  legalComments: 'none',
  logLevel: 'error',
} as const;
