// The command line of the benchmark.

import minimist from 'minimist';
import { WORKLOADS, type Workload } from './workloads.js';

const PEER_NAMES = ['nginx', 'haproxy', 'relay', 'envoy', 'baton'] as const;
export type PeerName = (typeof PEER_NAMES)[number];

export interface BenchOptions {
  peers: PeerName[];
  workloads: Workload[];
  rounds: number;
  seconds: number;
  memory: boolean;
  idleConnections: number;
  /** Command and arguments that start Baton; the configuration's arguments are appended. */
  batonCommand: string[];
  /** '': there is none. */
  envoyProgram: string;
  jsonPath: string | undefined;
}

export const USAGE = `npm run bench -- [options]

  --quick               one round of 2 seconds of a few workloads, no memory figures
  --workloads=a,b       only workloads whose name contains one of these (--list shows the names)
  --log=off|on|both     without an access log, with one, or both (default)
  --peers=a,b           of ${PEER_NAMES.join(', ')} (default: all; envoy only if the
                        environment variable ENVOY is the path of its binary)
  --rounds=N            rounds over all peers (default 3); the figures are medians
  --seconds=N           length of one measurement (default 4)
  --memory=off          leave out memory and start-up time
  --idle=N              idle connections for the memory figures (default 10000)
  --baton="command"     what starts Baton (default: node dist/baton/main.js)
  --json=FILE           also write the figures as JSON
  --list                print the workloads and end
`;

/** Small-request workloads that show a regression within a minute. */
const QUICK = ['get-small-curl-8', 'get-small-curl-64', 'get-small-browser-64', 'get-10k-curl-64', 'tcp-requests-64'];

/** Parses the command line. Throws an Error with a message for the user if it is invalid. */
export function parseOptions(argv: string[]): BenchOptions {
  const args = minimist(argv, {
    boolean: ['quick'],
    string: ['workloads', 'log', 'peers', 'rounds', 'seconds', 'memory', 'idle', 'baton', 'json'],
    default: { log: 'both', memory: 'on', idle: '10000', baton: `${process.execPath} dist/baton/main.js` },
    unknown: (name) => {
      throw new Error(`unknown argument ${name}`);
    },
  });
  const { ENVOY: envoyProgram = '' } = process.env;
  const peers = list(args.peers) ?? PEER_NAMES.filter((name) => name !== 'envoy' || envoyProgram !== '');
  for (const peer of peers) if (!isPeer(peer)) throw new Error(`unknown peer ${peer}`);
  if (peers.includes('envoy') && envoyProgram === '') throw new Error('envoy needs ENVOY: the path of its binary');
  const workloads = select(list(args.workloads), args.quick, oneOf('log', args.log, ['off', 'on', 'both']));
  if (workloads.length === 0) throw new Error('no workload has such a name; --list prints them');
  return {
    peers: peers.filter(isPeer),
    workloads,
    rounds: positive('rounds', args.rounds ?? (args.quick ? '1' : '3')),
    seconds: positive('seconds', args.seconds ?? (args.quick ? '2' : '4')),
    memory: !args.quick && oneOf('memory', args.memory, ['on', 'off']) === 'on',
    idleConnections: positive('idle', args.idle),
    batonCommand: String(args.baton).trim().split(/\s+/),
    envoyProgram,
    jsonPath: args.json,
  };
}

function select(parts: string[] | undefined, quick: boolean, log: string): Workload[] {
  return WORKLOADS.filter((workload) => {
    if (log !== 'both' && workload.logged !== (log === 'on')) return false;
    if (parts !== undefined) return parts.some((part) => workload.name.includes(part));
    return !quick || QUICK.includes(workload.name);
  });
}

function isPeer(name: string): name is PeerName {
  return (PEER_NAMES as readonly string[]).includes(name);
}

function list(value: string | undefined): string[] | undefined {
  return value?.split(',').filter((part) => part !== '');
}

function oneOf(option: string, value: string, allowed: string[]): string {
  if (!allowed.includes(value)) throw new Error(`--${option} must be one of ${allowed.join(', ')}, not ${value}`);
  return value;
}

function positive(option: string, value: string): number {
  const number = Number(value);
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`--${option} must be a whole number above 0, not ${value}`);
  return number;
}
