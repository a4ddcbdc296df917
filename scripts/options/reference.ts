// The texts of the man page and docs/command-line.md besides the options. Option names are written as --name.

/** A name or value, and what it means. */
export type Entry = readonly [name: string, meaning: string];

export const SUMMARY = 'a proxy for Envoy-style configurations';

export const DESCRIPTION: readonly string[] = [
  'baton is an HTTP and TCP proxy. It reads an Envoy v3 bootstrap and serves its listeners, by default with one worker ' +
    'thread for each CPU. The admin interface that the bootstrap configures shows its state and controls it.',
  'A field that baton does not implement is refused with an error that names it. All errors of a configuration are ' +
    'reported at once, each with its location.',
  'The value of an option follows after a space or an equals sign. An option may be given once, unless its description ' +
    'says otherwise. After a mistake, the program exits with a message that names the remedy.',
];

export const SIGNALS: readonly Entry[] = [
  [
    'SIGTERM, SIGINT',
    'The server shuts down at once, without draining its connections, and exits with status 0. With --drain-on-sigterm ' +
      'the first SIGTERM drains them first.',
  ],
  [
    'SIGUSR1',
    'All log files are reopened: access logs, the log of ejections and the file of --log-path. This is for log rotation.',
  ],
  ['SIGHUP', 'Logged, and otherwise ignored.'],
  ['SIGPIPE', 'Ignored.'],
];

export const EXIT_STATUS: readonly Entry[] = [
  [
    '0',
    'The server was shut down by request, the configuration is valid (--mode validate), or the requested text was printed.',
  ],
  [
    '1',
    'An option or the configuration is invalid, an address is not available, or the server cannot continue. The reason is ' +
      'written to standard error, and to the file of --log-path once it is open.',
  ],
];

export const ENVIRONMENT: readonly Entry[] = [
  [
    'PROXY_CGROUP_CPU_DETECTION',
    'If it is false (in upper or lower case), the default of --concurrency ignores the CPU limit of the cgroup. ' +
      'ENVOY_CGROUP_CPU_DETECTION is an alias.',
  ],
  [
    'NOTIFY_SOCKET',
    'A Unix socket, as a path or @name. The server sends READY=1 to it when it is live and STOPPING=1 when it stops, for ' +
      'systemd and baton-restarter; see sd_notify(3).',
  ],
  [
    'WATCHDOG_USEC',
    'The time, in microseconds, within which WATCHDOG=1 must be sent to NOTIFY_SOCKET; see sd_notify(3).',
  ],
  ['TZ', 'The time zone of times in the log.'],
];

export const FILES: readonly Entry[] = [
  ['/proc/self/cgroup, /proc/self/mountinfo', 'locate the CPU limit of the cgroup.'],
  [
    'cpu.max, cpu.cfs_quota_us, cpu.cfs_period_us',
    'in the directory of the cgroup contain the limit, for cgroups of version 2 and 1.',
  ],
];

/** A purpose, and the command for it. */
export const EXAMPLES: readonly (readonly [purpose: string, command: string])[] = [
  ['Check a configuration:', 'baton --mode validate -c front-proxy.yaml'],
  ['Check one that is generated, for a program:', 'generate-config | baton --mode validate --format json -'],
  ['Serve it with two workers, and log to a file:', 'baton -c front-proxy.yaml --concurrency 2 --log-path baton.log'],
  [
    'Give the admin interface a free port, and write it to a file:',
    'baton -c front-proxy.yaml --admin-address-path admin.txt \\\n' +
      "  --config-yaml '{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}}'",
  ],
  [
    'Log only routing and upstream, in detail:',
    'baton -c front-proxy.yaml -l off --component-log-level router:debug,upstream:trace',
  ],
  ['Start log lines with the level:', "baton -c front-proxy.yaml --log-format '%L %T.%e %n: %v'"],
];
