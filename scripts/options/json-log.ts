// The description of the JSON log in the documents.

import type { Entry } from './reference.js';

/** The option that enables it. */
export const JSON_LOG_OPTION = "--config-yaml '{application_log_config: {log_format: {json_format: {}}}}'";

export const JSON_LOG: readonly string[] = [
  'With the field application_log_config.log_format.json_format of the bootstrap, each log line is a JSON object. ' +
    'Not with --log-format or --log-format-escaped. Lines before the configuration is read have the format of --log-format.',
  'With an empty json_format, lines are records of pino, the logger that baton uses. Many tools can read them:',
];

/** Members of the records with an empty json_format. */
export const JSON_LOG_MEMBERS: readonly Entry[] = [
  ['level', '10 trace, 20 debug, 30 info, 40 warning, 50 error, 60 critical'],
  ['time', 'milliseconds since the epoch'],
  ['pid', 'process id'],
  ['name', 'name of the logger: the component, or the file with --enable-fine-grain-logging'],
  ['thread', 'thread id, in lines of threads other than the first'],
  ['caller', 'source file and line'],
  ['err', 'the exception, if the line reports one: its type, message and stack'],
  ['msg', 'the message'],
];

export const OWN_JSON_LOG: readonly string[] = [
  'With a json_format that has members, lines have these members in their order, and no others. Keys and values may contain ' +
    'flags of --log-format. %j is the message; %v and %_ are refused, as in Envoy. Numbers, lists and objects are unchanged. ' +
    'A stack trace is one line for each frame, or one with --log-stacktrace-single-entry.',
];

/** Members that pino-pretty supports. */
export const OWN_JSON_LOG_FORMAT = `application_log_config:
  log_format:
    json_format: { level: "%l", time: "%Y-%m-%dT%T.%e%z", name: "%n", msg: "%j" }`;

/** The pino-pretty command for lines whose levels are names. */
export const PRETTY_OWN = 'baton -c front-proxy.yaml 2>&1 | npx pino-pretty -x warning:40,critical:60 -U false';
