// The clusters on the home page: health of their hosts, requests and errors; each host when expanded.

import { type Child, el, setText } from '../dom.js';
import { countText, figureText, percentText, rateText } from '../numbers.js';
import { Rates } from '../series.js';
import { getJson } from '../server.js';
import { DataTable } from '../table.js';
import { type Outcome, RecentOutcomes } from './outcomes.js';

interface HostStatus {
  readonly address: {
    readonly socket_address?: { readonly address: string; readonly port_value: number };
    readonly pipe?: { readonly path: string };
    readonly envoy_internal_address?: { readonly server_listener_name: string; readonly endpoint_id?: string };
  };
  readonly stats?: readonly { readonly name: string; readonly value?: string }[];
  readonly health_status?: Readonly<Record<string, boolean | string>>;
  readonly weight?: number;
  readonly hostname?: string;
  readonly priority?: number;
  readonly locality?: { readonly zone?: string };
}

interface Answer {
  readonly cluster_statuses?: readonly { readonly name: string; readonly host_statuses?: readonly HostStatus[] }[];
}

interface HostRow {
  readonly address: string;
  /** 'healthy', or the problems. */
  readonly health: string;
  /** The host is usable, and not all recent requests to it have failed. */
  readonly isHealthy: boolean;
  readonly outcome: Outcome;
  readonly weight: number;
  readonly zone: string;
  readonly counts: ReadonlyMap<string, number>;
  readonly requestRate: number | undefined;
  readonly errorRate: number | undefined;
}

interface ClusterRow {
  readonly name: string;
  readonly hosts: readonly HostRow[];
  readonly healthyCount: number;
  readonly failingCount: number;
  /** Share of successful requests in the last half minute; undefined if there were none. */
  readonly successRate: number | undefined;
  readonly requestRate: number | undefined;
  readonly errorRate: number | undefined;
  readonly activeRequests: number;
  readonly connections: number;
}

/** Shares of successful requests below which a cluster is highlighted. */
const BAD_SUCCESS = 0.5;
const GOOD_SUCCESS = 0.99;

const HOST_TITLES = [
  'Host',
  'Health',
  'Weight',
  'Zone',
  'Requests',
  'Errors',
  'Active',
  'Connections',
  'Requests in all',
];

export class Clusters {
  readonly #rates = new Rates();
  readonly #outcomes = new RecentOutcomes();
  readonly #table = new DataTable<ClusterRow>({
    what: 'clusters',
    key: ({ name }) => name,
    columns: [
      { title: 'Cluster', value: ({ name }) => name },
      { title: 'Healthy hosts', isNumber: true, value: unhealthiness, show: showHealth },
      { title: 'Requests', isNumber: true, value: ({ requestRate }) => requestRate, show: showRate('requestRate') },
      { title: 'Errors', isNumber: true, value: ({ errorRate }) => errorRate, show: showRate('errorRate') },
      { title: 'Success', isNumber: true, value: ({ successRate }) => successRate, show: showSuccess },
      { title: 'Active requests', isNumber: true, value: ({ activeRequests }) => activeRequests },
      { title: 'Connections', isNumber: true, value: ({ connections }) => connections },
    ],
    details: ({ hosts }) => hostTable(hosts),
  });

  constructor(section: HTMLElement) {
    section.append(this.#table.element);
    section.hidden = false;
  }

  async load(): Promise<void> {
    const { cluster_statuses: statuses = [] } = await getJson<Answer>('clusters?format=json');
    this.#rates.begin(performance.now());
    this.#outcomes.begin();
    this.#table.set(statuses.map(({ name, host_statuses: hosts = [] }) => this.#clusterRow(name, hosts)));
  }

  #clusterRow(name: string, statuses: readonly HostStatus[]): ClusterRow {
    const hosts = statuses.map((status) => this.#hostRow(name, status));
    const sum = (count: (host: HostRow) => number | undefined) =>
      hosts.reduce<number | undefined>((total, host) => add(total, count(host)), hosts.length === 0 ? undefined : 0);
    const successes = sum(({ outcome }) => outcome.successes) ?? 0;
    const requests = successes + (sum(({ outcome }) => outcome.errors) ?? 0);
    return {
      name,
      hosts,
      healthyCount: hosts.filter(({ isHealthy }) => isHealthy).length,
      failingCount: hosts.filter(({ outcome }) => outcome.isFailing).length,
      successRate: requests === 0 ? undefined : successes / requests,
      requestRate: sum(({ requestRate }) => requestRate),
      errorRate: sum(({ errorRate }) => errorRate),
      activeRequests: sum(({ counts }) => counts.get('rq_active')) ?? 0,
      connections: sum(({ counts }) => counts.get('cx_active')) ?? 0,
    };
  }

  #hostRow(cluster: string, status: HostStatus): HostRow {
    const counts = new Map(status.stats?.map(({ name, value = '0' }) => [name, Number(value)]));
    const address = hostText(status);
    const rate = (name: string) => this.#rates.read(`${cluster} ${address} ${name}`, counts.get(name) ?? 0);
    const outcome = this.#outcomes.read(`${cluster} ${address}`, counts);
    const problems = [...problemsOf(status.health_status ?? {}), ...(outcome.isFailing ? ['failing'] : [])];
    return {
      address,
      health: problems.length === 0 ? 'healthy' : problems.join(', '),
      isHealthy: problems.length === 0,
      outcome,
      weight: status.weight ?? 1,
      zone: status.locality?.zone ?? '',
      counts,
      requestRate: rate('rq_total'),
      errorRate: rate('rq_error'),
    };
  }
}

function add(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b;
}

/** Returns the flags of envoy.admin.v3.HostHealthStatus that are set, as words. */
function problemsOf(health: Readonly<Record<string, boolean | string>>): string[] {
  return Object.entries(health).flatMap(([name, value]) => {
    if (name === 'eds_health_status') {
      return value === 'HEALTHY' || value === 'UNKNOWN' ? [] : [`${String(value).toLowerCase()} by discovery`];
    }
    return value === true ? [name.replaceAll('_', ' ')] : [];
  });
}

function hostText({ address, hostname }: HostStatus): string {
  const { envoy_internal_address: internal, pipe, socket_address: socket } = address;
  if (internal !== undefined) return `envoy://${internal.server_listener_name}/${internal.endpoint_id ?? ''}`;
  if (socket === undefined) return pipe?.path ?? '';
  const ip = socket.address.includes(':') ? `[${socket.address}]` : socket.address;
  return `${ip}:${socket.port_value}${hostname === undefined ? '' : ` (${hostname})`}`;
}

/** Sort key: the share of hosts that cannot be used. */
function unhealthiness({ hosts, healthyCount }: ClusterRow): number {
  return hosts.length === 0 ? 1 : 1 - healthyCount / hosts.length;
}

function showHealth({ hosts, healthyCount, failingCount }: ClusterRow, cell: HTMLTableCellElement): void {
  const text = `${countText(healthyCount)} of ${countText(hosts.length)}`;
  cell.classList.toggle('bad', healthyCount === 0);
  cell.classList.toggle('warn', healthyCount > 0 && healthyCount < hosts.length);
  setText(cell, failingCount === 0 ? text : `${text}, ${countText(failingCount)} failing`);
}

function showSuccess({ successRate }: ClusterRow, cell: HTMLTableCellElement): void {
  cell.classList.toggle('bad', successRate !== undefined && successRate < BAD_SUCCESS);
  cell.classList.toggle('warn', successRate !== undefined && successRate >= BAD_SUCCESS && successRate < GOOD_SUCCESS);
  setText(cell, percentText(successRate));
}

function showRate(name: 'requestRate' | 'errorRate') {
  return (row: ClusterRow, cell: HTMLTableCellElement) => {
    if (name === 'errorRate') cell.classList.toggle('bad', (row.errorRate ?? 0) > 0);
    setText(cell, rateText(row[name]));
  };
}

function hostTable(hosts: readonly HostRow[]): Node {
  if (hosts.length === 0) return el('p', {}, 'no hosts');
  const rows = hosts.map((host) => {
    const count = (name: string) => figureText(host.counts.get(name) ?? 0);
    const cells: Child[] = [
      el('td', { class: host.isHealthy ? 'good' : 'bad' }, host.health),
      el('td', { class: 'number' }, figureText(host.weight)),
      el('td', {}, host.zone),
      ...[
        rateText(host.requestRate),
        rateText(host.errorRate),
        count('rq_active'),
        count('cx_active'),
        count('rq_total'),
      ].map((text) => el('td', { class: 'number' }, text)),
    ];
    return el('tr', {}, el('th', { scope: 'row' }, host.address), ...cells);
  });
  const headings = HOST_TITLES.map((title, index) =>
    el('th', { scope: 'col', class: index === 2 || index > 3 ? 'number' : undefined }, title),
  );
  return el('table', { class: 'hosts' }, el('thead', {}, el('tr', {}, ...headings)), el('tbody', {}, ...rows));
}
