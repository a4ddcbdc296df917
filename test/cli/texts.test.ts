// The texts of the command line, and the options in /server_info.

import t from 'tap';
import { helpText } from '../../src/cli/help.js';
import { OPTION_ROWS } from '../../src/cli/options.js';
import { commandLineOptions } from '../../src/cli/server-info.js';
import { versionText } from '../../src/cli/version.js';
import { accepted } from './accepted.js';

const MEMBERS = [
  'admin_address_path',
  'allow_unknown_static_fields',
  'base_id',
  'base_id_path',
  'component_log_level',
  'concurrency',
  'config_path',
  'config_yaml',
  'cpuset_threads',
  'disable_hot_restart',
  'disabled_extensions',
  'drain_strategy',
  'drain_time',
  'enable_core_dump',
  'enable_fine_grain_logging',
  'enable_mutex_tracing',
  'file_flush_interval',
  'file_flush_min_size',
  'hot_restart_version',
  'ignore_unknown_dynamic_fields',
  'local_address_ip_version',
  'log_format',
  'log_format_escaped',
  'log_level',
  'log_path',
  'log_stacktrace_single_entry',
  'mode',
  'parent_shutdown_time',
  'reject_unknown_dynamic_fields',
  'restart_epoch',
  'service_cluster',
  'service_node',
  'service_zone',
  'skip_deprecated_logs',
  'skip_hot_restart_on_no_parent',
  'skip_hot_restart_parent_stats',
  'socket_mode',
  'socket_path',
  'stats_tag',
  'use_dynamic_base_id',
];

t.test('--help names every option, and no line is too long for a terminal', async (t) => {
  const text = helpText();
  for (const [name] of OPTION_ROWS) t.ok(text.includes(`--${name}`), name);
  for (const line of text.split('\n')) t.ok(line.length <= 100, line);
});

t.test('--version prints five fields between blank lines', async (t) => {
  t.match(
    versionText(),
    /^\nbaton {2}version: [0-9a-z]+\/\d+\.\d+\.\d+(-dev)?\/(Clean|Modified)\/RELEASE\/OpenSSL\n\n$/,
  );
});

t.test('command_line_options contains every member in its format, including defaults', async (t) => {
  const { options } = accepted(['--mode', 'init_only', '--drain-strategy', 'immediate', '--stats-tag', 'a:b']);
  const shown = commandLineOptions(options, 4);
  t.match(shown, {
    base_id: '0',
    concurrency: 4,
    mode: 'InitOnly',
    drain_strategy: 'Immediate',
    drain_time: '600s',
    file_flush_interval: '10s',
    parent_shutdown_time: '900s',
    restart_epoch: 0,
    local_address_ip_version: 'v4',
    socket_mode: 0,
    hot_restart_version: false,
    disabled_extensions: [],
    stats_tag: ['a:b'],
  });
  t.same(Object.keys(shown).sort(), MEMBERS);
});

t.test('the socket mode is shown in decimal, and an alias shows as the option it stands for', async (t) => {
  const { options } = accepted(['--socket-path', '/tmp/s', '--allow-unknown-fields']);
  t.match(commandLineOptions(options, 1), { socket_mode: 0o600, allow_unknown_static_fields: true });
});
