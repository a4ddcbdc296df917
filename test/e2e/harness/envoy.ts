// Tests whose expected answers are those of a real Envoy: they run with Baton, and with Envoy too where the environment variable ENVOY
// has the path of its binary (1.40), which shows that the answers are still Envoy's. It is no part of index.ts, which scripts import too:
// tap would end them after half a minute.

import t, { type Test } from 'tap';

/** For startBaton() and what calls it. */
export interface ProxyProgram {
  /** Undefined: Baton. */
  readonly command: string | undefined;
}

/** A test of Baton, and the same of Envoy. */
export function besideEnvoy(guarantee: string, body: (t: Test, program: ProxyProgram) => Promise<void>): void {
  t.test(guarantee, (t) => body(t, { command: undefined }));
  const { ENVOY } = process.env;
  const skip = ENVOY === undefined ? 'ENVOY is not set to the path of an Envoy' : false;
  t.test(`${guarantee} (Envoy's answers)`, { skip }, (t) => body(t, { command: ENVOY }));
}
