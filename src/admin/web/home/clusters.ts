// The clusters of the home page: health of their hosts, requests, errors; unfolded, each host.

import { type Child, el, setText } from '../dom.js';
import { countText, figureText, rateText } from '../numbers.js';
import { Rates } from '../series.js';
import { getJson } from '../server.js';
import { DataTable } from '../table.js';

interface HostStatus {
  readonly address: {
    readonly socket_address?: { readonly address: string; readonly port_value: number };
    readonly pipe?: { readonly path: string };
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
  /** 'healthy', or what is wrong. */
  readonly health: string;
  readonly isHealthy: boolean;
  readonly weight: number;
  readonly zone: string;
  readonly counts: ReadonlyMap<string, number>;
  readonly requestRate: number | undefined;
  readonly errorRate: number | undefined;
}

interface ClusterRow {
  readonly name: string;
  readonly hosts: readonly HostRow[];
  readonly healthy: number;
  readonly requestRate: number | undefined;
  readonly errorRate: number | undefined;
  readonly activeRequests: number;
  readonly connections: number;
}

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
  readonly #table = new DataTable<ClusterRow>({
    what: 'clusters',
    key: ({ name }) => name,
    columns: [
      { title: 'Cluster', value: ({ name }) => name },
      { title: 'Healthy hosts', isNumber: true, value: unhealthiness, show: showHealth },
      { title: 'Requests', isNumber: true, value: ({ requestRate }) => requestRate, show: showRate('requestRate') },
      { title: 'Errors', isNumber: true, value: ({ errorRate }) => errorRate, show: showRate('errorRate') },
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
    this.#table.set(statuses.map(({ name, host_statuses: hosts = [] }) => this.#clusterRow(name, hosts)));
  }

  #clusterRow(name: string, statuses: readonly HostStatus[]): ClusterRow {
    const hosts = statuses.map((status) => this.#hostRow(name, status));
    const sum = (count: (host: HostRow) => number | undefined) =>
      hosts.reduce<number | undefined>((total, host) => add(total, count(host)), hosts.length === 0 ? undefined : 0);
    return {
      name,
      hosts,
      healthy: hosts.filter(({ isHealthy }) => isHealthy).length,
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
    const problems = problemsOf(status.health_status ?? {});
    return {
      address,
      health: problems.length === 0 ? 'healthy' : problems.join(', '),
      isHealthy: problems.length === 0,
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

/** Flags of envoy.admin.v3.HostHealthStatus that are set, as words. */
function problemsOf(health: Readonly<Record<string, boolean | string>>): string[] {
  return Object.entries(health).flatMap(([name, value]) => {
    if (name === 'eds_health_status') {
      return value === 'HEALTHY' || value === 'UNKNOWN' ? [] : [`${String(value).toLowerCase()} by discovery`];
    }
    return value === true ? [name.replaceAll('_', ' ')] : [];
  });
}

function hostText({ address: { socket_address: socket, pipe }, hostname }: HostStatus): string {
  if (socket === undefined) return pipe?.path ?? '';
  const ip = socket.address.includes(':') ? `[${socket.address}]` : socket.address;
  return `${ip}:${socket.port_value}${hostname === undefined ? '' : ` (${hostname})`}`;
}

/** The most broken cluster has the largest: the share of its hosts that cannot be used. */
function unhealthiness({ hosts, healthy }: ClusterRow): number {
  return hosts.length === 0 ? 1 : 1 - healthy / hosts.length;
}

function showHealth({ hosts, healthy }: ClusterRow, cell: HTMLTableCellElement): void {
  const text = `${countText(healthy)} of ${countText(hosts.length)}`;
  cell.classList.toggle('bad', healthy === 0);
  cell.classList.toggle('warn', healthy > 0 && healthy < hosts.length);
  setText(cell, text);
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
