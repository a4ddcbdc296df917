// Events of ejections and returns as messages of the API.

import t from 'tap';
import { encodeJson, loadMessages } from '../../../src/config/schema/messages.js';
import { Origin, OutlierHost } from '../../../src/upstream/outliers/outlier-detector.js';
import { ejectionEvent, returnEvent } from '../../../src/upstream/outliers/outlier-event.js';
import { OUTLIER_NAMES, type OutlierKind } from '../../../src/upstream/outliers/outlier-kind.js';

const MESSAGE = 'envoy.data.cluster.v3.OutlierDetectionEvent';
const type = loadMessages(MESSAGE)[MESSAGE]!;

const RATES = [
  { average: 90.7, threshold: 52.3 },
  { average: 80.2, threshold: 41.9 },
] as const;

t.test('an ejection event contains its reason', async (t) => {
  const host = new OutlierHost();
  host.ejections = 3;
  host.volumes[Origin.External].rate = 50.9;
  host.volumes[Origin.Local].rate = 33.3;
  const reasons = OUTLIER_NAMES.map((_, index) => {
    const event = ejectionEvent(host, index as OutlierKind, true, (origin) => RATES[origin], 0);
    encodeJson(type, event);
    const { type: kind, action, num_ejections, enforced, ...reason } = event;
    t.same([action, num_ejections, enforced], ['EJECT', 3, true]);
    return [kind, reason];
  });
  const rate = (host_success_rate: number, average: number, threshold: number) => ({
    eject_success_rate_event: {
      host_success_rate,
      cluster_average_success_rate: average,
      cluster_success_rate_ejection_threshold: threshold,
    },
  });
  t.same(reasons, [
    ['CONSECUTIVE_5XX', { eject_consecutive_event: {} }],
    ['CONSECUTIVE_GATEWAY_FAILURE', { eject_consecutive_event: {} }],
    ['SUCCESS_RATE', rate(50, 90, 52)],
    ['CONSECUTIVE_LOCAL_ORIGIN_FAILURE', { eject_consecutive_event: {} }],
    ['SUCCESS_RATE_LOCAL_ORIGIN', rate(33, 80, 41)],
    ['FAILURE_PERCENTAGE', { eject_failure_percentage_event: { host_success_rate: 50 } }],
    ['FAILURE_PERCENTAGE_LOCAL_ORIGIN', { eject_failure_percentage_event: { host_success_rate: 33 } }],
  ]);
});

t.test('an event contains the time since the last ejection or return', async (t) => {
  const host = new OutlierHost();
  t.same(returnEvent(host, 5000), { action: 'UNEJECT' });
  host.changedMs = 1100;
  const event = returnEvent(host, 5000);
  t.same(event, { secs_since_last_action: '3', action: 'UNEJECT' });
  encodeJson(type, event);
});
