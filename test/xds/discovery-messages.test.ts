// Responses of management servers, field by field.

import t from 'tap';
import { runSync } from '../../src/common/time/next-turn.js';
import { encodeJson, loadMessages } from '../../src/config/schema/messages.js';
import { decodeDeltaResponse, decodeStateResponse } from '../../src/xds/grpc/protocols/discovery-messages.js';

const STATE = 'envoy.service.discovery.v3.DiscoveryResponse';
const DELTA = 'envoy.service.discovery.v3.DeltaDiscoveryResponse';
const types = loadMessages(STATE, DELTA);

t.test('a response of many resources is read in steps', async (t) => {
  const many = 50_000;
  const state = encodeJson(types[STATE], { version_info: '1', resources: new Array(many).fill({}) });
  const delta = encodeJson(types[DELTA], { resources: new Array(many).fill({}), removed_resources: ['a'] });
  for (const steps of [decodeStateResponse(state), decodeDeltaResponse(delta)]) {
    let count = 0;
    const counted = (function* () {
      for (;;) {
        const { done, value } = steps.next();
        if (done === true) return value;
        count++;
        yield;
      }
    })();
    t.equal(runSync(counted).resources.length, many);
    t.ok(count >= 5, `it took ${count} steps`);
  }
});

t.test('a garbled response is refused, in whichever step', async (t) => {
  const good = Buffer.from(encodeJson(types[STATE], { resources: new Array(20_000).fill({}) }));
  for (const bytes of [Buffer.from([0]), Buffer.concat([good, Buffer.from([0x12, 0x7f])])]) {
    t.throws(() => runSync(decodeStateResponse(bytes)));
  }
});
