// Which hosts are ejected, and for how long: without threads and clock.

import t from 'tap';
import { Random } from '../../../src/common/random.js';
import type { OutlierDetection } from '../../../src/config/generated/api.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { Origin, OutlierDetector, OutlierHost } from '../../../src/upstream/outliers/outlier-detector.js';
import { OUTLIER_NAMES, OutlierKind } from '../../../src/upstream/outliers/outlier-kind.js';
import { OutlierSettings, outlierSpec } from '../../../src/upstream/outliers/outlier-spec.js';
import { setValues } from '../../runtime/values.js';

const SECOND = 1000;
const KINDS = OUTLIER_NAMES.map((_, kind) => kind as OutlierKind);

function detection(config: OutlierDetection, hostCount: number, random = new Random(1)) {
  const runtime = new Runtime();
  const events: string[] = [];
  const hosts = Array.from({ length: hostCount }, () => new OutlierHost());
  const nameOf = (host: OutlierHost) => `host ${hosts.indexOf(host)}`;
  const detector = new OutlierDetector<OutlierHost>(new OutlierSettings(outlierSpec(config), runtime), random, {
    detected: (kind) => events.push(`detected ${OUTLIER_NAMES[kind]}`),
    overflowed: () => events.push('overflow'),
    ejected: (host, kind, isEnforced) =>
      events.push(`${nameOf(host)} ${OUTLIER_NAMES[kind]}${isEnforced ? '' : ' not enforced'}`),
    returned: (host) => events.push(`${nameOf(host)} returned`),
  });
  for (const host of hosts) detector.add(host);
  return {
    detector,
    hosts,
    runtime,
    /** Returns the events since the last call. */
    events: () => events.splice(0),
    /** Sets each host's requests and successes, and ends the interval. */
    sweep(nowMs: number, total: number, successes: readonly number[], origin = Origin.External) {
      for (const [index, host] of hosts.entries()) {
        for (const volume of host.volumes) volume.total = volume.successes = 0;
        Object.assign(host.volumes[origin], { total, successes: successes[index] ?? 0 });
      }
      detector.sweep(nowMs);
    },
  };
}

t.test('no more hosts than permitted are ejected, and none twice', async (t) => {
  const { detector, hosts, events } = detection({ max_ejection_percent: 50 }, 3);
  detector.detect(hosts[0]!, OutlierKind.Consecutive5xx, 0);
  detector.detect(hosts[0]!, OutlierKind.Consecutive5xx, 1);
  detector.detect(hosts[1]!, OutlierKind.ConsecutiveLocalOriginFailure, 2);
  t.same(events(), [
    'detected consecutive_5xx',
    'host 0 consecutive_5xx',
    'detected consecutive_local_origin_failure',
    'overflow',
  ]);
  t.same(
    hosts.map((host) => host.isEjected),
    [true, false, false],
  );
  detector.remove(hosts[0]!);
  t.equal(detector.ejected, 0, 'a removed ejected host makes room');
  detector.detect(hosts[0]!, OutlierKind.Consecutive5xx, 3);
  detector.detect(hosts[1]!, OutlierKind.Consecutive5xx, 3);
  t.same(events(), ['detected consecutive_5xx', 'host 1 consecutive_5xx'], 'half of the remaining hosts');
  detector.remove(hosts[2]!);
  t.equal(detector.ejected, 1, 'a removed host that was not ejected makes none');
});

t.test('of few hosts none is ejected, unless always_eject_one_host is set', async (t) => {
  for (const [always, expected] of [
    [false, [false, false]],
    [true, [true, false]],
  ] as const) {
    const { detector, hosts } = detection({ always_eject_one_host: always }, 9);
    for (const host of hosts.slice(0, 2)) detector.detect(host, OutlierKind.Consecutive5xx, 0);
    t.same([hosts[0]!.isEjected, hosts[1]!.isEjected], expected, `always_eject_one_host: ${always}`);
  }
  const { detector, hosts } = detection({}, 10);
  detector.detect(hosts[0]!, OutlierKind.Consecutive5xx, 0);
  t.ok(hosts[0]!.isEjected, 'one of ten is ten percent');
});

t.test('each kind has its enforcing percentage, which runtime may change', async (t) => {
  for (const kind of KINDS) {
    const name = `enforcing_${OUTLIER_NAMES[kind]!}` as const;
    const percent = /gateway|percentage/.test(name) ? 0 : 100;
    const { detector, hosts, runtime, events } = detection({ max_ejection_percent: 100 }, 2);
    detector.detect(hosts[0]!, kind, 0);
    t.equal(hosts[0]!.isEjected, percent === 100, `${name}: ${percent}`);
    events();
    setValues(runtime, { [`outlier_detection.${name}`]: String(100 - percent) });
    detector.detect(hosts[1]!, kind, 0);
    t.same(events(), [
      `detected ${OUTLIER_NAMES[kind]}`,
      `host 1 ${OUTLIER_NAMES[kind]}${percent === 100 ? ' not enforced' : ''}`,
    ]);
    t.equal(detector.ejected, 1);
  }
  const some = detection({ enforcing_consecutive_5xx: 25, max_ejection_percent: 100 }, 1000);
  for (const host of some.hosts) some.detector.detect(host, OutlierKind.Consecutive5xx, 0);
  t.ok(some.detector.ejected > 150 && some.detector.ejected < 350, `${some.detector.ejected} of 1000`);
});

t.test('ejections become longer each time, and good intervals shorten them again', async (t) => {
  const config = { base_ejection_time: '10s', max_ejection_time: '25s', max_ejection_percent: 100 };
  const { detector, hosts, sweep, events } = detection(config, 1);
  const [host] = hosts as [OutlierHost];
  let now = 0;
  const eject = () => detector.detect(host, OutlierKind.Consecutive5xx, now);
  /** Ejects it, and returns after how many seconds it is back. */
  const secondsAway = () => {
    eject();
    for (const begin = now; ; sweep(now, 0, [])) {
      if (!host.isEjected) return (now - begin) / SECOND;
      now += SECOND;
    }
  };
  t.same(
    Array.from({ length: 6 }, () => secondsAway()),
    [10, 20, 25, 25, 25, 25],
  );
  t.same([host.ejections, host.multiplier], [6, 4], 'the multiplier grows no further than the time');
  t.equal(events().at(-1), 'host 0 returned');
  for (let interval = 0; interval < 3; interval++) sweep(now, 0, []);
  t.equal(secondsAway(), 20);
  for (let interval = 0; interval < 9; interval++) sweep(now, 0, []);
  t.equal(secondsAway(), 10);
});

t.test('jitter up to its maximum is added to the ejection time', async (t) => {
  const config = { base_ejection_time: '1s', max_ejection_time_jitter: '1s', max_ejection_percent: 100 };
  const { detector, hosts } = detection(config, 100);
  for (const host of hosts) detector.detect(host, OutlierKind.Consecutive5xx, 0);
  detector.sweep(SECOND);
  t.equal(detector.ejected, 100);
  detector.sweep(1.5 * SECOND);
  t.ok(detector.ejected > 10 && detector.ejected < 90, `${detector.ejected} of 100 after half of it`);
  detector.sweep(2 * SECOND);
  t.equal(detector.ejected, 0);
});

t.test('a host with a success rate far below the average is ejected', async (t) => {
  const { detector, hosts, sweep, events } = detection({ max_ejection_percent: 100 }, 5);
  const outlier = [100, 100, 100, 100, 50];
  sweep(0, 99, outlier);
  t.same(detector.rates(Origin.External), { average: -1, threshold: -1 }, 'too few requests');
  t.same([events(), hosts[4]!.volumes[Origin.External].rate], [[], (100 * 50) / 99], 'enough for failure percentages');
  sweep(0, 100, outlier);
  t.same(events(), ['detected success_rate', 'host 4 success_rate']);
  // Average 90, standard deviation 20.
  t.same(detector.rates(Origin.External), { average: 90, threshold: 90 - 1.9 * 20 });
  t.equal(hosts[4]!.volumes[Origin.External].rate, 50);
  sweep(0, 100, outlier);
  t.same(detector.rates(Origin.External), { average: -1, threshold: -1 }, 'four are too few to compare');
  t.equal(hosts[4]!.volumes[Origin.External].rate, -1, 'of an ejected host nothing is reckoned');
  t.same(events(), []);

  const few = detection({ max_ejection_percent: 100 }, 4);
  few.sweep(0, 100, [100, 100, 100, 0]);
  t.same([few.events(), few.hosts[0]!.volumes[Origin.External].rate], [[], -1]);
  const strict = detection({ max_ejection_percent: 100, success_rate_stdev_factor: 2100 }, 5);
  strict.sweep(0, 100, outlier);
  t.same(strict.events(), [], '50 is not below 90 - 2.1 * 20');
});

t.test('a host without requests has no rate, even with a volume of 0', async (t) => {
  const { detector, hosts, sweep } = detection({ success_rate_request_volume: 0, success_rate_minimum_hosts: 1 }, 5);
  sweep(0, 0, []);
  t.same([detector.rates(Origin.External).average, hosts[0]!.volumes[Origin.External].rate], [-1, -1]);
});

t.test('a host with too many failures is ejected, regardless of the others', async (t) => {
  const config = { enforcing_failure_percentage: 100, max_ejection_percent: 100, enforcing_success_rate: 0 };
  const { hosts, sweep, events } = detection(config, 5);
  sweep(0, 49, [0, 0, 0, 0, 0]);
  t.same(events(), [], 'too few requests');
  const few = detection({ ...config, failure_percentage_minimum_hosts: 6 }, 5);
  few.sweep(0, 100, [0, 0, 0, 0, 0]);
  t.same(few.events(), [], 'too few hosts');
  sweep(0, 100, [100, 16, 15, 0, 50]);
  t.same(
    events().filter((event) => event.startsWith('host')),
    ['host 2 failure_percentage', 'host 3 failure_percentage'],
  );
  t.same(
    hosts.map((host) => host.isEjected),
    [false, false, true, true, false],
  );
});

t.test('local-origin failures are compared separately', async (t) => {
  const config = { max_ejection_percent: 100, enforcing_failure_percentage_local_origin: 100 };
  const { detector, hosts, sweep, events } = detection(config, 5);
  sweep(0, 100, [100, 100, 100, 100, 50], Origin.Local);
  t.same(events(), ['detected local_origin_success_rate', 'host 4 local_origin_success_rate']);
  t.same([detector.rates(Origin.Local).average, detector.rates(Origin.External).average], [90, -1]);
  t.same(
    hosts[4]!.volumes.map((volume) => volume.rate),
    [-1, 50],
  );
  const all = detection(config, 5);
  all.sweep(0, 100, [0, 0, 0, 0, 0], Origin.Local);
  t.equal(all.events().filter((event) => event.endsWith('failure_percentage_local_origin')).length, 10);
});

t.test('a host that is an outlier of two kinds at once is ejected once', async (t) => {
  const { detector, hosts, sweep } = detection({ max_ejection_percent: 100, enforcing_failure_percentage: 100 }, 5);
  sweep(0, 100, [100, 100, 100, 100, 0]);
  t.same([detector.ejected, hosts[4]!.ejections], [1, 1]);
});

t.test("unset fields have the API's defaults", async (t) => {
  t.same(outlierSpec({}), {
    splitsLocalOrigin: false,
    alwaysEjectsOne: false,
    returnsWhenChecked: true,
    numbers: {
      consecutive_5xx: 5,
      consecutive_gateway_failure: 5,
      consecutive_local_origin_failure: 5,
      enforcing_consecutive_5xx: 100,
      enforcing_consecutive_gateway_failure: 0,
      enforcing_consecutive_local_origin_failure: 100,
      enforcing_success_rate: 100,
      enforcing_local_origin_success_rate: 100,
      enforcing_failure_percentage: 0,
      enforcing_failure_percentage_local_origin: 0,
      max_ejection_percent: 10,
      success_rate_minimum_hosts: 5,
      success_rate_request_volume: 100,
      success_rate_stdev_factor: 1900,
      failure_percentage_threshold: 85,
      failure_percentage_minimum_hosts: 5,
      failure_percentage_request_volume: 50,
      interval_ms: 10_000,
      base_ejection_time_ms: 30_000,
      max_ejection_time_ms: 300_000,
      max_ejection_time_jitter_ms: 0,
    },
  });
  t.equal(outlierSpec({ base_ejection_time: '400s' }).numbers.max_ejection_time_ms, 400_000);
  t.equal(outlierSpec({ consecutive_5xx: 0 }).numbers.consecutive_5xx, 0);
});
