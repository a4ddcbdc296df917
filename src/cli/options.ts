// The option table. Parsing, --help, /server_info and the documents are generated from its rows.

import { MAX_TIMER_MS } from '../common/time/max-timer.js';
import { withoutSecrets } from '../config/text/yaml/yaml-document.js';
import { LEVEL_NAMES, parseLevel } from '../log/levels.js';
import { DEFAULT_LOG_FORMAT } from '../log/log-format.js';
import {
  checkComponentLevels,
  checkHosts,
  checkLevel,
  checkOneLine,
  checkSocketMode,
  checkStatsTag,
  oneOf,
} from './checks.js';
import { type Camel, listOf, type OptionRow, type ValueOf } from './option-row.js';
import { MAX_MEGABYTES } from './worker-memory.js';

const MAX_UINT32 = 2 ** 32 - 1;

/** In the order of --help. */
export const OPTIONS = {
  'config-path': {
    kind: 'string',
    alias: 'c',
    value: 'path',
    default: '',
    help: 'Bootstrap file. Its extension selects the format: .yaml, .yml, .json, .pb, .pb_text.',
    details:
      'The option name may be left out: baton my.yaml. A dash (-) reads YAML or JSON from standard input. ' +
      'Without a file, --config-yaml is needed.',
    completes: 'path',
    info: 'config_path',
  },
  'config-yaml': {
    kind: 'string',
    value: 'yaml',
    default: '',
    help: 'Bootstrap as YAML or JSON text. With --config-path it is merged onto the file: values replace, lists append.',
    details: 'Messages are merged field by field, maps key by key; the result is checked after the merge.',
    info: 'config_yaml',
    render: withoutSecrets,
  },
  'expand-env': {
    kind: 'flag',
    default: false,
    help: `Replaces \${NAME} and \${NAME:-default} in values by variables of the environment.`,
    details:
      'Applies to the bootstrap file, standard input and --config-yaml, not to files that these name. Values are replaced after ' +
      'the text was parsed, so a variable cannot add fields; names of fields are not replaced. The default also stands for an ' +
      'empty variable. A variable that is not set and has no default is an error. $${ stands for the text ${.',
  },
  'watch-config': {
    kind: 'flag',
    default: false,
    help: 'Applies the bootstrap file whenever it changes, without a restart.',
    details:
      'It detects a file that is written or moved into place, and a symbolic link that is changed. Static listeners, clusters, ' +
      'routes and runtime values change, all or nothing. A file that is refused or needs a restart is logged and changes ' +
      'nothing. Needs --config-path. POST /config/reload does the same on demand.',
  },
  mode: {
    kind: 'string',
    value: 'mode',
    default: 'serve',
    check: oneOf('mode', ['serve', 'validate', 'init_only'], ['serve', 'validate']),
    help: 'serve checks the configuration and serves it; validate only checks it and exits with 0 or 1.',
    details:
      'validate prints OK, or all errors. Mistakes in files that the configuration names for LDS, CDS, RDS and EDS are warnings. It opens no socket and does not affect running processes.',
    completes: ['serve', 'validate'],
    info: 'mode',
    render: (value: string) => ({ serve: 'Serve', validate: 'Validate', init_only: 'InitOnly' })[value],
  },
  format: {
    kind: 'string',
    value: 'format',
    default: 'text',
    check: oneOf('format', ['text', 'json'], ['text', 'json']),
    help: 'Form of the answer of --mode validate on standard output: text or json.',
    details:
      'json prints an object with ok, configuration, errors and warnings. Each mistake has a message and, where known, file, ' +
      'line, column and path. Messages also go to the log. Needs --mode validate.',
    completes: ['text', 'json'],
  },
  'route-tests': {
    kind: 'string',
    value: 'path',
    default: '',
    help: 'With --mode validate: a file of requests, and where the routes must send them.',
    details:
      'The file is YAML or JSON in the form of router_check_tool. Tests that fail are printed with the conditions of the routes ' +
      'that did not hold, and the exit status is 1.',
    completes: 'path',
  },
  'admin-address-path': {
    kind: 'string',
    value: 'path',
    default: '',
    help: 'File to which the address and port of the admin interface are written.',
    details:
      'It is written once the interface listens: 127.0.0.1:9901, [::1]:9901 or the path of a socket, without a line end. ' +
      'With port 0 it contains the port that was chosen. If the file cannot be written, the error is logged and the server ' +
      'continues.',
    completes: 'path',
    info: 'admin_address_path',
  },
  'admin-allowed-hosts': {
    kind: 'string',
    value: 'list',
    default: '',
    check: checkHosts,
    help: 'Host headers that the admin interface accepts, as <host>,… Default: all.',
    details:
      'A host is a name or an address; without a port it matches any port: localhost,127.0.0.1:9901,::1. Requests with another ' +
      'Host header get 403. This protects against web pages that point their own name at the admin address (DNS rebinding).',
  },
  'admin-max-connections': {
    kind: 'integer',
    value: 'n',
    default: 128,
    min: 1,
    max: 65_535,
    help: 'Maximum number of concurrent connections to the admin interface.',
    details:
      'A further connection replaces the one that has been idle longest (without a complete request to answer), or else one ' +
      'whose client has read nothing of its answer for 5 seconds. If there is none, the further connection is closed.',
  },
  'local-address-ip-version': {
    kind: 'string',
    value: 'v4|v6',
    default: 'v4',
    check: oneOf('IP address version', ['v4', 'v6'], ['v4', 'v6'], 'local-address-ip-version'),
    help: "IP version of the server's local address, which X-Forwarded-For may contain.",
    completes: ['v4', 'v6'],
    info: 'local_address_ip_version',
  },
  'base-id': {
    kind: 'integer',
    value: 'id',
    default: 0,
    max: MAX_UINT32,
    help: 'Base ID for hot restart. Servers on one machine need different ones; all epochs of a server need the same.',
    details: 'A server whose base ID is in use exits with status 1.',
    info: 'base_id',
    render: String,
  },
  'use-dynamic-base-id': {
    kind: 'flag',
    default: false,
    help: 'Picks an unused base ID. Supersedes --base-id; not with --restart-epoch above 0.',
    details:
      'The ID is random and below 2^28. --base-id-path writes it to a file; pass it to later epochs with --base-id.',
    info: 'use_dynamic_base_id',
  },
  'base-id-path': {
    kind: 'string',
    value: 'path',
    default: '',
    help: 'File to which the base ID is written.',
    details:
      'In decimal, without a line end. Not with --disable-hot-restart. If the file cannot be written, the error is logged and ' +
      'the server continues.',
    completes: 'path',
    info: 'base_id_path',
  },
  'skip-hot-restart-on-no-parent': {
    kind: 'flag',
    default: false,
    help: 'With --restart-epoch: starts normally if the parent ended before this process was initialized.',
    details:
      'This applies only if the parent does not answer at all. If it answers and then exits, this process exits too.',
    info: 'skip_hot_restart_on_no_parent',
  },
  'skip-hot-restart-parent-stats': {
    kind: 'flag',
    default: false,
    help: 'With --restart-epoch: does not take over the stats of the parent.',
    details: 'Counters begin at 0, and gauges show this process alone.',
    info: 'skip_hot_restart_parent_stats',
  },
  concurrency: {
    kind: 'integer',
    value: 'n',
    default: 0,
    max: 1024,
    help: 'Number of worker threads. Default: hardware threads, limited by CPU affinity and the cgroup CPU limit.',
    details:
      "0 runs one worker. The limit of the process's own cgroup (version 1 or 2) is rounded down to at " +
      'least 1; see PROXY_CGROUP_CPU_DETECTION below.',
    info: 'concurrency',
  },
  'worker-buffer-memory-mb': {
    kind: 'integer',
    value: 'MB',
    default: 0,
    min: 16,
    max: MAX_MEGABYTES,
    help: `Memory in which a worker buffers requests and responses. Default: half of the total, divided among the workers.`,
    details:
      'The total is the memory of the machine, or the limit of the cgroup. The default is at least 64 MB and at most ' +
      `${MAX_MEGABYTES}. Memory is allocated as needed and released afterwards. The stats server.worker_<N>.buffer_memory_* ` +
      'show how much is in use.',
  },
  'log-level': {
    kind: 'string',
    alias: 'l',
    value: 'level',
    default: 'info',
    check: (value) => checkLevel(value),
    help: 'Log level: trace, debug, info, warning, error, critical, off.',
    details: 'warn is the same as warning.',
    completes: LEVEL_NAMES,
    info: 'log_level',
    render: (value: string) => parseLevel(value),
  },
  'component-log-level': {
    kind: 'string',
    value: 'list',
    default: '',
    check: checkComponentLevels,
    help: 'Levels of individual components, such as http:debug,router:trace. Not with --enable-fine-grain-logging.',
    details: 'The components are listed below.',
    completes: 'component-levels',
    info: 'component_log_level',
  },
  'cpuset-threads': {
    kind: 'flag',
    default: false,
    help: 'Has no effect; accepted for compatibility with older start scripts.',
    details: 'The default of --concurrency respects the affinity mask in any case.',
    info: 'cpuset_threads',
  },
  'log-path': {
    kind: 'string',
    value: 'path',
    default: '',
    help: 'Log file instead of standard error. Reopened at SIGUSR1.',
    details:
      'The file is created if it is missing, and appended to. Baton does not start if it cannot be opened, or if it is a named ' +
      'pipe without a reader. If the reader of a pipe is too slow, lines are dropped.',
    completes: 'path',
    info: 'log_path',
  },
  'log-format': {
    kind: 'string',
    value: 'format',
    default: DEFAULT_LOG_FORMAT,
    help: 'Layout of a log line.',
    details:
      'The flags are listed below. A flag may have a width: %8l aligns right, %-8l left, %=8l centres; with ! after the ' +
      'width, longer text is cut. Other text is printed unchanged.',
    info: 'log_format',
  },
  'log-format-escaped': {
    kind: 'flag',
    default: false,
    help: 'Escapes line ends and other control characters, so that each entry is one line.',
    details:
      'The line end of the entry itself is not escaped. Bytes that are not printable ASCII are written in octal.',
    info: 'log_format_escaped',
  },
  'restart-epoch': {
    kind: 'integer',
    value: 'n',
    default: 0,
    max: MAX_UINT32,
    help: 'Number of this epoch; usually set by baton-restarter.',
    details: '0 is a normal start; each hot restart adds one. At most three processes overlap.',
    info: 'restart_epoch',
  },
  'log-stacktrace-single-entry': {
    kind: 'flag',
    default: false,
    help: 'Logs a stack trace as one entry.',
    details: 'Without it, each frame is a separate entry.',
    info: 'log_stacktrace_single_entry',
  },
  'enable-fine-grain-logging': {
    kind: 'flag',
    default: false,
    help: 'Uses one logger per source file, each with its own level. Not with --component-log-level.',
    details: 'POST /logging sets the levels, by path, file name or pattern.',
    info: 'enable_fine_grain_logging',
  },
  'socket-path': {
    kind: 'string',
    value: 'path',
    default: '@proxy_domain_socket',
    help: 'Hot restart socket; a leading @ means the abstract namespace. All processes of a restart need the same.',
    completes: 'path',
    info: 'socket_path',
  },
  'socket-mode': {
    kind: 'string',
    value: 'mode',
    default: '600',
    check: checkSocketMode,
    help: 'Permissions of the hot restart socket file, in octal. Only with a --socket-path in the file system.',
    info: 'socket_mode',
  },
  'hot-restart-version': {
    kind: 'flag',
    default: false,
    help: 'Prints the hot restart compatibility version and exits.',
    details:
      'It is printed to standard error, without a line end. GET /hot_restart_version shows it for a running server. ' +
      'Processes with equal versions can restart into each other; "disabled" is compatible with none.',
    info: 'hot_restart_version',
  },
  'service-cluster': {
    kind: 'string',
    value: 'name',
    default: '',
    check: (value) => checkOneLine(value, 'service-cluster'),
    help: 'Overrides node.cluster of the bootstrap.',
    info: 'service_cluster',
  },
  'service-node': {
    kind: 'string',
    value: 'name',
    default: '',
    check: (value) => checkOneLine(value, 'service-node'),
    help: 'Overrides node.id of the bootstrap.',
    info: 'service_node',
  },
  'service-zone': {
    kind: 'string',
    value: 'name',
    default: '',
    help: 'Overrides node.locality.zone of the bootstrap.',
    info: 'service_zone',
  },
  'file-flush-interval-msec': {
    kind: 'integer',
    value: 'ms',
    default: 10_000,
    min: 1,
    max: MAX_TIMER_MS,
    help: 'How long an access log buffers text before it is written.',
    details: 'Text is written earlier if --file-flush-min-size-kb is reached.',
    info: 'file_flush_interval',
    render: (value: number) => `${value % 1000 === 0 ? value / 1000 : (value / 1000).toFixed(3)}s`,
  },
  'file-flush-min-size-kb': {
    kind: 'integer',
    value: 'KB',
    default: 64,
    max: 1024 * 1024,
    help: 'How much text an access log buffers before it is written.',
    info: 'file_flush_min_size',
  },
  'drain-time-s': {
    kind: 'integer',
    value: 's',
    default: 600,
    max: MAX_UINT32,
    help: 'How long connections are drained, that is, asked to close at the end of a response.',
    details:
      'It applies to hot restarts, to listeners that are changed or removed, to POST /drain_listeners?graceful and to ' +
      '--drain-on-sigterm. It should be less than --parent-shutdown-time-s.',
    info: 'drain_time',
    render: (value: number) => `${value}s`,
  },
  'drain-strategy': {
    kind: 'string',
    value: 'strategy',
    default: 'gradual',
    check: oneOf('drain-strategy', ['gradual', 'immediate'], ['gradual', 'immediate'], 'drain-strategy'),
    help: 'gradual asks a share of connections to close that grows over the drain time; immediate asks all.',
    completes: ['gradual', 'immediate'],
    info: 'drain_strategy',
    render: (value: string) => (value === 'immediate' ? 'Immediate' : 'Gradual'),
  },
  'drain-on-sigterm': {
    kind: 'flag',
    default: false,
    help: 'Drains connections at SIGTERM before the server exits.',
    details:
      'Health checks and /ready fail, connections are drained, and the server exits with status 0 when the last connection has ' +
      'closed or the drain time is over. Meanwhile it accepts connections, for at least 5 seconds or a quarter of the drain ' +
      'time, whichever is shorter. A second SIGTERM, or SIGINT, stops it at once.',
  },
  'hand-over-connections': {
    kind: 'flag',
    default: false,
    help: 'At a hot restart, moves established connections to the new process.',
    details:
      'Plaintext HTTP/1.1 connections move between two requests, TCP proxy connections at any time, if they fit the ' +
      "new process's configuration; others are drained. Both processes need the option. The old one exits as soon as it has no " +
      'connections, without waiting for --parent-shutdown-time-s.',
  },
  'parent-shutdown-time-s': {
    kind: 'integer',
    value: 's',
    default: 900,
    max: MAX_UINT32,
    help: 'How long a hot restart waits before it shuts down the parent.',
    details: 'Counted from when this process is live. It should be more than the drain time of the parent.',
    info: 'parent_shutdown_time',
    render: (value: number) => `${value}s`,
  },
  'disable-hot-restart': {
    kind: 'flag',
    default: false,
    help: 'Disables hot restart.',
    details: 'The server then needs no base ID of its own, and does not exit when the process that started it exits.',
    info: 'disable_hot_restart',
  },
  'enable-mutex-tracing': {
    kind: 'flag',
    default: false,
    help: 'Collects contention stats for GET /contention.',
    info: 'enable_mutex_tracing',
  },
  'allow-unknown-fields': {
    kind: 'flag',
    default: false,
    help: 'Deprecated; the same as --allow-unknown-static-fields.',
  },
  'allow-unknown-static-fields': {
    kind: 'flag',
    default: false,
    help: 'Accepts unknown fields in static configuration, with a warning.',
    details: 'Unknown fields are fields that the API does not have. The stat server.static_unknown_fields counts them.',
    info: 'allow_unknown_static_fields',
  },
  'reject-unknown-dynamic-fields': {
    kind: 'flag',
    default: false,
    help: 'Refuses unknown fields in dynamic configuration.',
    details: 'Without it they are accepted, with a warning at first use, and counted in server.dynamic_unknown_fields.',
    info: 'reject_unknown_dynamic_fields',
  },
  'ignore-unknown-dynamic-fields': {
    kind: 'flag',
    default: false,
    help: 'Neither warns about nor counts unknown fields in dynamic configuration.',
    details: 'Has no effect with --reject-unknown-dynamic-fields.',
    info: 'ignore_unknown_dynamic_fields',
  },
  'skip-deprecated-logs': {
    kind: 'flag',
    default: false,
    help: 'Suppresses warnings about deprecated fields.',
    info: 'skip_deprecated_logs',
  },
  'disable-extensions': {
    kind: 'string',
    value: 'list',
    default: '',
    help: 'Extensions that no configuration may use, as <category>/<name>,…',
    details:
      'For example envoy.filters.http/envoy.filters.http.buffer. The log at start lists all extensions, after "statically ' +
      'linked extensions". An unknown name is logged as a warning.',
    info: 'disabled_extensions',
    render: listOf,
  },
  version: {
    kind: 'flag',
    default: false,
    help: 'Prints the version and exits.',
    details:
      'Five fields between slashes: source revision, release, state of the tree (Clean or Modified), build ' +
      '(RELEASE or DEBUG), TLS library.',
  },
  schema: {
    kind: 'flag',
    default: false,
    help: 'Prints the JSON Schema of the accepted configuration and exits.',
    details:
      'Draft-07, for editors and validators, without fields that are not implemented. Editors with yaml-language-server ' +
      'complete and check a file whose first line is "# yaml-language-server: $schema=<file>".',
  },
  'enable-core-dump': {
    kind: 'flag',
    default: false,
    help: 'Allows core dumps of this process.',
    details:
      'Sets the dumpable flag of the process, which a change of user clears. ulimit -c still limits the size of a core ' +
      'file, and kernel.core_pattern determines where it is written.',
    info: 'enable_core_dump',
  },
  'stats-tag': {
    kind: 'list',
    value: 'tag:value',
    default: [],
    check: checkStatsTag,
    help: 'A tag for all stats, shown by monitoring formats and sinks; may be repeated.',
    details:
      'A tag consists of letters and digits; its value may contain any character but a dot. Each tag may be given once.',
    info: 'stats_tag',
  },
  help: { kind: 'flag', alias: 'h', default: false, help: 'Prints this text and exits.' },
} as const satisfies { readonly [name: string]: OptionRow };

export type OptionName = keyof typeof OPTIONS;

/** The value of each option, or its default, keyed by the option's name in camelCase. */
export type OptionValues = {
  readonly [N in OptionName as Camel<N>]: ValueOf<(typeof OPTIONS)[N]>;
};

/** A checked command line; plain data. */
export interface Options extends OptionValues {
  /** Names of the options that were given. */
  readonly given: readonly OptionName[];
}

/** All rows with their names. */
export const OPTION_ROWS = Object.entries(OPTIONS) as readonly (readonly [OptionName, OptionRow])[];
