// The option table: everything that parsing, help and /server_info know of an option stands in its row.

import { LONGEST_TIMER_MS } from '../common/longest-timer.js';
import { LEVEL_NAMES, parseLevel } from '../log/levels.js';
import { DEFAULT_LOG_FORMAT } from '../log/log-format.js';
import { checkComponentLevels, checkExtensions, checkLevel, checkSocketMode, checkStatsTag, oneOf } from './checks.js';
import type { Camel, OptionRow, ValueOf } from './option-row.js';

const MAX_UINT32 = 2 ** 32 - 1;

/** In the order in which they are listed. */
export const OPTIONS = {
  'config-path': {
    kind: 'string',
    alias: 'c',
    value: 'path',
    default: '',
    help: 'Bootstrap file. Its extension selects the format: .yaml, .yml, .json, .pb, .pb_text.',
    details: 'Without it --config-yaml is needed.',
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
  },
  'watch-config': {
    kind: 'flag',
    default: false,
    help: 'Applies the bootstrap file anew whenever it changes, without a restart.',
    details:
      'A file that is written to or moved into place, and links that lead elsewhere. Static listeners, clusters, routes and ' +
      'values of runtime change, all or nothing; what is refused, or needs a restart, is logged, and nothing changes. ' +
      'Needs --config-path. POST /config/reload does the same when it is asked to.',
  },
  mode: {
    kind: 'string',
    value: 'mode',
    default: 'serve',
    check: oneOf('mode', ['serve', 'validate', 'init_only'], ['serve', 'validate']),
    help: 'What to do: serve checks the configuration and serves it, validate checks it and exits with 0 or 1.',
    details:
      'validate prints OK, or all errors. It opens no socket, talks to nobody and leaves running processes alone.',
    completes: ['serve', 'validate'],
    info: 'mode',
    render: (value: string) => ({ serve: 'Serve', validate: 'Validate', init_only: 'InitOnly' })[value],
  },
  'admin-address-path': {
    kind: 'string',
    value: 'path',
    default: '',
    help: 'File to which the address and port of the admin interface are written.',
    details:
      'As 127.0.0.1:9901, [::1]:9901 or the path of a socket, without a line end, once the interface listens; ' +
      'with port 0 it tells the port that was free. When the file cannot be written, that is logged and the ' +
      'server runs on.',
    completes: 'path',
    info: 'admin_address_path',
  },
  'admin-allowed-hosts': {
    kind: 'string',
    value: 'list',
    default: '',
    help: 'Hosts that requests to the admin interface may name, as <host>,…; all when it is not given.',
    details:
      'A host is a name or an address, with any port, or with the one that is given: localhost,127.0.0.1:9901. Requests ' +
      'with another Host header get 403. It keeps out web pages that give their own name to the address of the admin ' +
      'interface (DNS rebinding).',
  },
  'local-address-ip-version': {
    kind: 'string',
    value: 'v4|v6',
    default: 'v4',
    check: oneOf('IP address version', ['v4', 'v6'], ['v4', 'v6'], 'local-address-ip-version'),
    help: "IP version of the server's local address, which X-Forwarded-For may name.",
    completes: ['v4', 'v6'],
    info: 'local_address_ip_version',
  },
  'base-id': {
    kind: 'integer',
    value: 'id',
    default: 0,
    max: MAX_UINT32,
    help: 'Base ID of hot restarts: servers side by side need different ones, processes of a restart the same.',
    details: 'A server whose base ID is taken exits with status 1.',
    info: 'base_id',
    render: String,
  },
  'use-dynamic-base-id': {
    kind: 'flag',
    default: false,
    help: 'Picks an unused base ID. Supersedes --base-id; not with --restart-epoch above 0.',
    details: 'A random one below 2^28; --base-id-path tells which, for the --base-id of later epochs.',
    info: 'use_dynamic_base_id',
  },
  'base-id-path': {
    kind: 'string',
    value: 'path',
    default: '',
    help: 'File to which the base ID is written.',
    details:
      'In decimal, without a line end; not with --disable-hot-restart. When the file cannot be written, that is ' +
      'logged and the server runs on.',
    completes: 'path',
    info: 'base_id_path',
  },
  'skip-hot-restart-on-no-parent': {
    kind: 'flag',
    default: false,
    help: 'With --restart-epoch: starts normally if the parent ended before this process was initialized.',
    details:
      'That is when it does not answer at all; a parent that has answered and goes away still ends this process.',
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
    help: 'Number of worker threads. Default: hardware threads, at most what affinity and cgroup CPU limit allow.',
    details:
      "0 runs one worker. The cgroup is the process's own, version 1 or 2, and its limit is rounded down to at " +
      'least 1; see PROXY_CGROUP_CPU_DETECTION below.',
    info: 'concurrency',
  },
  'log-level': {
    kind: 'string',
    alias: 'l',
    value: 'level',
    default: 'info',
    check: (value) => checkLevel(value),
    help: 'Log level: trace, debug, info, warning, error, critical, off.',
    details: 'warn is another name of warning.',
    completes: LEVEL_NAMES,
    info: 'log_level',
    render: (value: string) => LEVEL_NAMES[parseLevel(value)!],
  },
  'component-log-level': {
    kind: 'string',
    value: 'list',
    default: '',
    check: checkComponentLevels,
    help: 'Levels of single loggers, as http:debug,router:trace. Not with --enable-fine-grain-logging.',
    details: 'The names of the components are listed below.',
    completes: 'component-levels',
    info: 'component_log_level',
  },
  'cpuset-threads': {
    kind: 'flag',
    default: false,
    help: 'Has no effect; accepted because older start scripts give it.',
    details: 'The affinity mask counts for the default of --concurrency in any case.',
    info: 'cpuset_threads',
  },
  'log-path': {
    kind: 'string',
    value: 'path',
    default: '',
    help: 'Log file instead of standard error. Reopened at SIGUSR1.',
    details:
      'The file is created when it is missing, and appended to. Baton does not start when it cannot be opened, nor when it is ' +
      'a named pipe without a reader; what a reader does not take is dropped in the end.',
    completes: 'path',
    info: 'log_path',
  },
  'log-format': {
    kind: 'string',
    value: 'format',
    default: DEFAULT_LOG_FORMAT,
    help: 'Layout of a log line.',
    details:
      'The flags are listed below. A flag may have a width, as %8l, %-8l or %=8l for text to the right, left or ' +
      'middle; with ! behind the width, longer text is cut. What is no flag is printed as it stands.',
    info: 'log_format',
  },
  'log-format-escaped': {
    kind: 'flag',
    default: false,
    help: 'Escapes line ends and the like, so that one entry stays on one line.',
    details: 'The line end of the entry itself stays. Bytes that are not printable ASCII are written in octal.',
    info: 'log_format_escaped',
  },
  'restart-epoch': {
    kind: 'integer',
    value: 'n',
    default: 0,
    max: MAX_UINT32,
    help: 'Number of hot restarts so far; usually what the hot restart wrapper sets.',
    details: '0 starts anew; each restart adds one. At most three processes overlap.',
    info: 'restart_epoch',
  },
  'log-stacktrace-single-entry': {
    kind: 'flag',
    default: false,
    help: 'Logs a stack trace as one entry.',
    details: 'Otherwise each frame is an entry of its own.',
  },
  'enable-fine-grain-logging': {
    kind: 'flag',
    default: false,
    help: 'One logger a source file, each with a level of its own. Not with --component-log-level.',
    details: 'POST /logging changes the levels, by path, file name or pattern.',
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
      'On standard error, without a line end; GET /hot_restart_version tells the same of a running server. ' +
      'Processes with equal values can restart into each other; disabled is compatible with none.',
    info: 'hot_restart_version',
  },
  'service-cluster': {
    kind: 'string',
    value: 'name',
    default: '',
    help: 'Overrides node.cluster of the bootstrap.',
    info: 'service_cluster',
  },
  'service-node': {
    kind: 'string',
    value: 'name',
    default: '',
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
    max: LONGEST_TIMER_MS,
    help: 'How long an access log may hold text back before it is written.',
    details: 'Whichever comes first counts, this or --file-flush-min-size-kb.',
    info: 'file_flush_interval',
    render: (value: number) => `${value % 1000 === 0 ? value / 1000 : (value / 1000).toFixed(3)}s`,
  },
  'file-flush-min-size-kb': {
    kind: 'integer',
    value: 'KB',
    default: 64,
    max: 1024 * 1024,
    help: 'How much text an access log gathers before it is written.',
  },
  'drain-time-s': {
    kind: 'integer',
    value: 's',
    default: 600,
    max: MAX_UINT32,
    help: 'How long connections are drained: asked to close, at the end of a response.',
    details:
      'At a hot restart, when a listener is changed or removed, by POST /drain_listeners?graceful and with ' +
      '--drain-on-sigterm. Should be less than --parent-shutdown-time-s.',
    info: 'drain_time',
    render: (value: number) => `${value}s`,
  },
  'drain-strategy': {
    kind: 'string',
    value: 'strategy',
    default: 'gradual',
    check: oneOf('drain-strategy', ['gradual', 'immediate'], ['gradual', 'immediate'], 'drain-strategy'),
    help: 'How connections are drained: gradual asks a share to close that rises over the drain time, immediate asks all.',
    completes: ['gradual', 'immediate'],
    info: 'drain_strategy',
    render: (value: string) => (value === 'immediate' ? 'Immediate' : 'Gradual'),
  },
  'drain-on-sigterm': {
    kind: 'flag',
    default: false,
    help: 'SIGTERM drains the server before it ends it.',
    details:
      'Health checks and /ready fail, connections are drained, and the server exits with status 0 when the last one has ' +
      'ended or the drain time is over. It accepts connections meanwhile, for 5 seconds or a quarter of the drain time at ' +
      'least. A second SIGTERM, and SIGINT, end it at once.',
  },
  'hand-over-connections': {
    kind: 'flag',
    default: false,
    help: 'At a hot restart, established connections go on in the new process.',
    details:
      'Those of plaintext HTTP/1.1 between two requests, and those of the TCP proxy at any moment, if the configuration of ' +
      'the new process has a place for them; others are drained. Both processes need the option. The old one ends as soon ' +
      'as it has no connections, without waiting for --parent-shutdown-time-s.',
  },
  'parent-shutdown-time-s': {
    kind: 'integer',
    value: 's',
    default: 900,
    max: MAX_UINT32,
    help: 'How long a hot restart waits before it shuts the parent down.',
    details: 'From the moment on at which this process is live. Should be more than the drain time of the parent.',
    info: 'parent_shutdown_time',
    render: (value: number) => `${value}s`,
  },
  'disable-hot-restart': {
    kind: 'flag',
    default: false,
    help: 'Does without hot restarts.',
    details:
      'The server does not need a base ID of its own then, and does not end when the process ends that has started it.',
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
    help: 'Accepts fields that the API does not have in static configuration, with a warning.',
    details: 'The stat server.static_unknown_fields counts them.',
    info: 'allow_unknown_static_fields',
  },
  'reject-unknown-dynamic-fields': {
    kind: 'flag',
    default: false,
    help: 'Refuses fields that the API does not have in dynamic configuration.',
    details: 'Without it they are accepted, with a warning at first use.',
    info: 'reject_unknown_dynamic_fields',
  },
  'ignore-unknown-dynamic-fields': {
    kind: 'flag',
    default: false,
    help: 'Neither warns of nor counts unknown fields in dynamic configuration.',
    details: 'Has no meaning with --reject-unknown-dynamic-fields.',
    info: 'ignore_unknown_dynamic_fields',
  },
  'skip-deprecated-logs': {
    kind: 'flag',
    default: false,
    help: 'Does not warn of deprecated fields.',
    info: 'skip_deprecated_logs',
  },
  'disable-extensions': {
    kind: 'string',
    value: 'list',
    default: '',
    check: checkExtensions,
    help: 'Extensions that no configuration may use, as <category>/<name>,…',
    details:
      'The list behind "statically linked extensions" in the log at start shows them; ' +
      'envoy.filters.http/envoy.filters.http.buffer is one. A name that no extension has is logged as a warning.',
    info: 'disabled_extensions',
    render: (value: string) => value.split(',').filter((item) => item !== ''),
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
      'Draft-07, for editors and validators: fields that are not implemented are no part of it, and an editor that ' +
      'reads "# yaml-language-server: $schema=<file>" in the first line of a file completes and checks its fields.',
  },
  'enable-core-dump': {
    kind: 'flag',
    default: false,
    help: 'Allows core dumps of this process.',
    details:
      'Sets the dumpable flag of the process, which a change of user takes away. How large a core file may be ' +
      'is still the limit that ulimit -c shows, and where it goes kernel.core_pattern.',
    info: 'enable_core_dump',
  },
  'stats-tag': {
    kind: 'list',
    value: 'tag:value',
    default: [],
    check: checkStatsTag,
    help: 'A tag on all stats, which monitoring formats and sinks show; may be repeated.',
    details: 'Tags consist of letters and digits, values of anything but a dot; each tag is given once.',
    info: 'stats_tag',
  },
  help: { kind: 'flag', alias: 'h', default: false, help: 'Prints this text and exits.' },
} as const satisfies { readonly [name: string]: OptionRow };

export type OptionName = keyof typeof OPTIONS;

/** The value of each option, its default where it is not given, by the option's name in camelCase. */
export type OptionValues = {
  readonly [N in OptionName as Camel<N>]: ValueOf<(typeof OPTIONS)[N]>;
};

/** A checked command line; plain data. */
export interface Options extends OptionValues {
  /** Names of the options that were given. */
  readonly given: readonly OptionName[];
}

/** The rows with their names. */
export const OPTION_ROWS = Object.entries(OPTIONS) as readonly (readonly [OptionName, OptionRow])[];
