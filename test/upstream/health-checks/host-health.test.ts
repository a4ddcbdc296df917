import t from 'tap';
import { HostHealth, Outcome } from '../../../src/upstream/health-checks/host-health.js';
import { HealthFlag, healthFlagsText } from '../../../src/upstream/hosts/health-flags.js';

/** A host that was checked so, and whether each check has left a threshold to be reached. */
function checked(outcomes: readonly Outcome[], thresholds = { unhealthy: 3, healthy: 2 }, isPending = false) {
  const health = new HostHealth(thresholds, isPending);
  const edges = outcomes.map((outcome) => health.take(outcome));
  return { health, edges, text: healthFlagsText(health.flags) };
}

t.test('a host is unhealthy before its first check, which decides by itself', async (t) => {
  t.equal(checked([]).text, '/failed_active_hc');
  t.same(checked([Outcome.Passed]).edges, [false]);
  t.equal(checked([Outcome.Passed]).text, 'healthy');
  t.same(checked([Outcome.NetworkFailure]).edges, [false]);
  t.equal(checked([Outcome.NetworkFailure]).text, '/failed_active_hc');
});

t.test('a host that counts only when it is checked counts after any check', async (t) => {
  t.equal(checked([], undefined, true).text, '/failed_active_hc/pending_active_hc');
  t.equal(checked([Outcome.Passed], undefined, true).text, 'healthy');
  const failed = checked([Outcome.Failed], undefined, true);
  t.same([failed.text, failed.edges], ['/failed_active_hc', [false]]);
});

t.test('failures count up to the threshold, and one that passes begins anew', async (t) => {
  const { text, edges } = checked([
    Outcome.Passed,
    Outcome.NetworkFailure,
    Outcome.Timeout,
    Outcome.Passed,
    Outcome.NetworkFailure,
    Outcome.FailedRetriably,
  ]);
  t.same([text, edges], ['healthy', [false, true, true, false, true, true]]);
  const failed = checked([Outcome.Passed, Outcome.NetworkFailure, Outcome.Timeout, Outcome.FailedRetriably]);
  t.same([failed.text, failed.edges.at(-1)], ['/failed_active_hc', false]);
});

t.test('an answer that says so makes a host unhealthy at once', async (t) => {
  t.equal(checked([Outcome.Passed, Outcome.Failed]).text, '/failed_active_hc');
});

t.test('a host comes back with as many passed checks in a row as the threshold says', async (t) => {
  const { text, edges } = checked([
    Outcome.Passed,
    Outcome.Failed,
    Outcome.Passed,
    Outcome.Failed,
    Outcome.Passed,
    Outcome.Passed,
  ]);
  t.same([text, edges], ['healthy', [false, false, true, false, true, false]]);
});

t.test('the flag of a timeout is there while the last failure of an unhealthy host was one', async (t) => {
  const timeout = '/failed_active_hc/active_hc_timeout';
  t.equal(checked([Outcome.Timeout]).text, timeout);
  t.equal(checked([Outcome.Passed, Outcome.Timeout]).text, 'healthy');
  t.equal(checked([Outcome.Passed, Outcome.Timeout, Outcome.Timeout, Outcome.Timeout]).text, timeout);
  t.equal(checked([Outcome.Timeout, Outcome.NetworkFailure]).text, '/failed_active_hc');
  t.equal(checked([Outcome.Timeout, Outcome.Failed, Outcome.Timeout]).text, timeout);
  t.equal(checked([Outcome.Timeout, Outcome.Passed]).text, timeout, 'a threshold is not reached');
  t.equal(checked([Outcome.Timeout, Outcome.Passed, Outcome.Passed]).text, 'healthy');
});

t.test('a degraded host is one that passes', async (t) => {
  const degraded = checked([Outcome.Degraded]);
  t.same([degraded.text, degraded.health.isHealthy], ['/degraded_active_hc', true]);
  const failed = checked([Outcome.Failed, Outcome.Degraded]);
  t.same([failed.text, failed.edges], ['/failed_active_hc/degraded_active_hc', [false, true]], 'it needs as many');
  t.equal(checked([Outcome.Passed, Outcome.Degraded, Outcome.Passed]).text, 'healthy');
});

t.test('a response to a request that says so excludes a host until it is healthy again', async (t) => {
  const excluded = '/failed_active_hc/excluded_via_immediate_hc_fail';
  t.equal(checked([Outcome.Passed, Outcome.FailedInTraffic]).text, excluded);
  t.equal(checked([Outcome.Passed, Outcome.FailedInTraffic, Outcome.Passed]).text, excluded);
  t.equal(checked([Outcome.Passed, Outcome.FailedInTraffic, Outcome.Passed, Outcome.Passed]).text, 'healthy');
  t.equal(checked([Outcome.FailedInTraffic]).health.flags & HealthFlag.ExcludedViaImmediateFail, 128);
});
