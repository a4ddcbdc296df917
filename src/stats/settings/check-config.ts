// Checks of the stats configuration in the bootstrap that the schema cannot express.

import { messageOf } from '../../common/errors/errors.js';
import type { Report } from '../../config/catalog/extension.js';
import type { Bootstrap, TagSpecifier } from '../../config/generated/api.js';
import { isDefaultTag } from '../tags/default-rows.js';
import { compileTagRegex, tagGroupCount } from '../tags/tag-regex.js';

export function checkStatsConfig(bootstrap: Bootstrap, report: Report): void {
  const { stats_config: config, stats_flush_interval: interval, stats_flush_on_admin: onAdmin } = bootstrap;
  if (interval !== undefined && onAdmin !== undefined) {
    report('stats_flush_on_admin', 'Only one of stats_flush_interval or stats_flush_on_admin should be set!');
  }
  if (Number(bootstrap.stats_server_version_override ?? 0) > Number.MAX_SAFE_INTEGER) {
    report('stats_server_version_override', `a gauge is exact up to ${Number.MAX_SAFE_INTEGER}`);
  }
  const fixed = new Set<string>();
  config?.stats_tags?.forEach((tag, index) => {
    const path = `stats_config.stats_tags[${index}]`;
    checkTag(tag, path, report);
    const { fixed_value: value, tag_name: name = '' } = tag;
    if (value === undefined || name === '') return;
    if (fixed.has(name)) report(`${path}.tag_name`, `tag '${name}' has a fixed value already, and keeps that one`);
    fixed.add(name);
  });
  config?.histogram_bucket_settings?.forEach(({ buckets }, index) => {
    buckets?.forEach((bound, number) => {
      if (Number.isFinite(Number(bound))) return;
      report(`stats_config.histogram_bucket_settings[${index}].buckets[${number}]`, 'a bucket needs a finite bound');
    });
  });
}

function checkTag(tag: TagSpecifier, path: string, report: Report): void {
  const { tag_name: name = '', regex, fixed_value: fixed } = tag;
  if (name === '') report(`${path}.tag_name`, 'tag_name cannot be empty');
  else if (fixed !== undefined) return;
  else if (regex === undefined || regex === '') {
    if (isDefaultTag(name)) return;
    report(`${path}.tag_name`, `No regex specified for tag specifier and no default regex for name: '${name}'`);
  } else checkRegex(regex, `${path}.regex`, report);
}

function checkRegex(regex: string, path: string, report: Report): void {
  try {
    compileTagRegex(regex);
    if (tagGroupCount(regex) > 0) return;
    report(path, 'it has no capture group: put the value of the tag in parentheses');
  } catch (error) {
    report(path, messageOf(error));
  }
}
