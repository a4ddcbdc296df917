// The home page's script: updates its figures and sends its forms.

import { byId, setText } from '../dom.js';
import { uptimeText } from '../numbers.js';
import { poll } from '../poll.js';
import { encodeSpaces } from '../query.js';
import { getJson } from '../server.js';
import { getStats } from '../stats-json.js';
import { handleActions } from './actions.js';
import { Clusters } from './clusters.js';
import { GAUGE_STATS, Gauges } from './gauges.js';
import { Listeners } from './listeners.js';
import { addRuntimeFields } from './runtime-form.js';

interface ServerInfo {
  readonly version: string;
  readonly state: string;
  readonly uptime_current_epoch: string;
  readonly uptime_all_epochs: string;
}

const gauges = new Gauges(byId('gauges', HTMLElement));
const clusters = new Clusters(byId('clusters-section', HTMLElement));
const listeners = new Listeners(byId('listeners-section', HTMLElement));

addRuntimeFields();
handleActions();
encodeSpaces();
poll(updateServer, () => 2);
poll(
  () => clusters.load(),
  () => 3,
);
poll(
  () => listeners.load(),
  () => 5,
);
poll(updateFigures, () => 1);

async function updateServer(): Promise<void> {
  const info = await getJson<ServerInfo>('server_info');
  show('server-state', info.state);
  show('server-version', info.version);
  show('server-uptime', uptimeText(Number.parseInt(info.uptime_current_epoch, 10)));
  show('server-uptime-all', uptimeText(Number.parseInt(info.uptime_all_epochs, 10)));
}

function show(id: string, value: string): void {
  const element = byId(id, HTMLElement);
  setText(element, value);
  element.dataset['value'] = value;
}

async function updateFigures(): Promise<void> {
  const stats = await getStats({ filter: GAUGE_STATS });
  gauges.update(stats);
  listeners.update(stats);
}
