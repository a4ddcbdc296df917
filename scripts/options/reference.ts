// What the man page and docs/command-line.md tell beside the options. Names of options stand as --name in the texts.

/** A name or value, and what it means. */
export type Entry = readonly [name: string, meaning: string];

export const SUMMARY = 'a proxy for Envoy-style configurations';

export const DESCRIPTION: readonly string[] = [
  'baton is an HTTP and TCP proxy. It reads a bootstrap in the form of Envoy v3, serves its listeners with one worker ' +
    'thread for each CPU by default, and can be asked and steered through the admin interface that the bootstrap names.',
  'What a configuration asks for is obeyed or refused: a field that baton does not implement is an error that names it. ' +
    'All errors of a configuration are reported at once, each with its place.',
  'The value of an option stands behind a space or an equals sign. Every option is given at most once, except those ' +
    'that say otherwise. A mistake ends the program with a message that says what to do.',
];

export const SIGNALS: readonly Entry[] = [
  [
    'SIGTERM, SIGINT',
    'The server shuts down at once, without draining its connections, and exits with status 0. With --drain-on-sigterm ' +
      'the first SIGTERM drains them before.',
  ],
  ['SIGUSR1', 'All log files are opened anew: access logs and the file of --log-path. This is for log rotation.'],
  ['SIGHUP', 'Is logged, and has no effect.'],
  ['SIGPIPE', 'Is ignored.'],
];

export const EXIT_STATUS: readonly Entry[] = [
  ['0', 'The server was told to end; the configuration is valid (--mode validate); or the answer was printed.'],
  [
    '1',
    'An option, the configuration or an address is wrong, or the server cannot go on. Standard error says why, and so does ' +
      'the file of --log-path once it is open.',
  ],
];

export const ENVIRONMENT: readonly Entry[] = [
  [
    'PROXY_CGROUP_CPU_DETECTION',
    'With the value false, in any case, the CPU limit of the cgroup does not count for the default of --concurrency. ' +
      'ENVOY_CGROUP_CPU_DETECTION is another name of it.',
  ],
  [
    'NOTIFY_SOCKET',
    'A Unix socket, as a path or @name, on which the server says when it is live (READY=1) and when it leaves ' +
      '(STOPPING=1): for systemd and baton-restarter, see sd_notify(3).',
  ],
  [
    'WATCHDOG_USEC',
    'How often a sign of life (WATCHDOG=1) is wanted on NOTIFY_SOCKET, in microseconds; see sd_notify(3).',
  ],
  ['TZ', 'The time zone of the times in the log.'],
];

export const FILES: readonly Entry[] = [
  ['/proc/self/cgroup, /proc/self/mountinfo', 'tell where the CPU limit of the cgroup is found.'],
  [
    'cpu.max, cpu.cfs_quota_us, cpu.cfs_period_us',
    'in the directory of the cgroup hold that limit, for cgroups of version 2 and 1.',
  ],
];

/** What it does, and the command. */
export const EXAMPLES: readonly (readonly [purpose: string, command: string])[] = [
  ['Check a configuration:', 'baton --mode validate -c front-proxy.yaml'],
  ['Serve it with two workers, and log to a file:', 'baton -c front-proxy.yaml --concurrency 2 --log-path baton.log'],
  [
    'Give the admin interface a free port, and learn from a file which:',
    'baton -c front-proxy.yaml --admin-address-path admin.txt \\\n' +
      "  --config-yaml '{admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}}'",
  ],
  [
    'Follow routing and the upstream closely, and log nothing else:',
    'baton -c front-proxy.yaml -l off --component-log-level router:debug,upstream:trace',
  ],
  ['Log lines that begin with the level:', "baton -c front-proxy.yaml --log-format '%L %T.%e %n: %v'"],
];
