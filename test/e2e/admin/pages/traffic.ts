// Continuous requests while a test checks figures.

import { httpRequest, type Teardown } from '../../harness/index.js';

const PAUSE_MS = 20;

/** Sends one request after the other, with a pause that leaves CPU time to the browser, until the test ends. */
export function sendTraffic(t: Teardown, port: number, path = '/'): void {
  let isEnded = false;
  const ended = (async () => {
    while (!isEnded) {
      await httpRequest(port, path).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  })();
  t.teardown(() => {
    isEnded = true;
    return ended;
  });
}
