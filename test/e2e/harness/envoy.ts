// Tests whose expected results are those of a real Envoy. They run with Baton, and with Envoy too when the environment variable
// ENVOY is the path of its binary (1.40), which shows that the results still match Envoy's. Not part of index.ts, which scripts
// import too: tap would end those after half a minute.

import t, { type Test } from 'tap';

/** Passed to startBaton() and its wrappers. */
export interface ProxyProgram {
  /** Undefined for Baton. */
  readonly command: string | undefined;
}

/** Runs a test with Baton, and the same test with Envoy. */
export function besideEnvoy(guarantee: string, body: (t: Test, program: ProxyProgram) => Promise<void>): void {
  t.test(guarantee, (t) => body(t, { command: undefined }));
  const { ENVOY, ENVOY_UNTIL } = process.env;
  t.test(`${guarantee} (with Envoy)`, { skip: whySkipped(ENVOY, ENVOY_UNTIL) }, (t) => body(t, { command: ENVOY }));
}

/** `until`: the time from which tests do not run with Envoy any more, in seconds since 1970; undefined: they always do. */
function whySkipped(envoy: string | undefined, until: string | undefined): string | false {
  if (envoy === undefined) return 'ENVOY is not set to the path of an Envoy';
  return until !== undefined && Date.now() / 1000 >= Number(until) && 'the time for tests with Envoy is over';
}
