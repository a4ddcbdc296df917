// The log in JSON form, as the documents describe it.

import type { Entry } from './reference.js';

/** What asks for it. */
export const JSON_LOG_OPTION = "--config-yaml '{application_log_config: {log_format: {json_format: {}}}}'";

export const JSON_LOG: readonly string[] = [
  'The field application_log_config.log_format.json_format of the bootstrap makes each line of the log an object in JSON ' +
    'form. Not with --log-format or --log-format-escaped. Lines before the configuration is read are as --log-format says.',
  'An empty json_format gives records of pino, the logger that baton uses, which many tools read:',
];

/** Of the records that an empty json_format gives. */
export const JSON_LOG_MEMBERS: readonly Entry[] = [
  ['level', '10 trace, 20 debug, 30 info, 40 warning, 50 error, 60 critical'],
  ['time', 'milliseconds since the epoch'],
  ['pid', 'process id'],
  ['name', 'name of the logger: the component, or the file with --enable-fine-grain-logging'],
  ['thread', 'thread id, in lines of threads other than the first'],
  ['caller', 'source file and line'],
  ['err', 'what was thrown, if the line is about an exception: its type, message and stack'],
  ['msg', 'the message'],
];

export const OWN_JSON_LOG: readonly string[] = [
  'A json_format with members gives these members, in their order, and no others. Flags of --log-format may stand in keys ' +
    'and in values. %j is the message; %v and %_ are refused, as in Envoy. Numbers, lists and objects stay what they are. ' +
    'A stack trace is one line for each frame, or one with --log-stacktrace-single-entry.',
];

/** Members that pino-pretty knows. */
export const OWN_JSON_LOG_FORMAT = `application_log_config:
  log_format:
    json_format: { level: "%l", time: "%Y-%m-%dT%T.%e%z", name: "%n", msg: "%j" }`;

/** pino-pretty for lines whose levels are names. */
export const PRETTY_OWN = 'baton -c front-proxy.yaml 2>&1 | npx pino-pretty -x warning:40,critical:60 -U false';
