// The result of a configuration reload as text for people.

import { formatProblem, formatProblems } from '../../config/text/problem.js';
import {
  type ConfigDifference,
  type FieldChange,
  RESOURCE_KINDS,
  type ReloadView,
  type ResourceChange,
} from './reload-view.js';

export function reloadText(view: ReloadView): string {
  switch (view.outcome) {
    case 'busy':
      return 'another reload is under way\n';
    case 'invalid':
      return `the configuration is refused, nothing has changed:\n${formatProblems(view.errors)}\n${section('warnings', view.warnings.map(formatProblem))}`;
    case 'unread':
      return `the configuration cannot be read now, nothing has changed: ${view.why}\n`;
    case 'failed':
      return `${failureText(view)}: ${view.why}\n${detailsText(view)}`;
    case 'needs-restart':
      return `not applied: a part of it needs a restart; partial=true applies the rest\n${detailsText(view)}`;
    case 'possible':
      return `${possibleText(view.difference)}\n${detailsText(view)}`;
    case 'applied':
      return `${view.difference.changes.length === 0 ? 'nothing to apply' : 'applied'}\n${detailsText(view)}`;
  }
}

/** Returns `clusters: 1 added, 2 changed, 7 unchanged; listeners: …`, for kinds with changes. */
export function summary({ changes, unchanged }: ConfigDifference): string {
  const kinds = RESOURCE_KINDS.filter((kind) => changes.some((change) => change.kind === kind));
  if (kinds.length === 0) return 'nothing to apply';
  return kinds.map((kind) => `${kind}s: ${countsText(changes, kind, unchanged[kind])}`).join('; ');
}

/** Describes the state after a reload that could not be applied. */
export function failureText({ isUndone }: { readonly isUndone: boolean }): string {
  return isUndone ? 'not applied, everything is as it was' : 'applied in part, and not to be taken back';
}

type Compared = Extract<ReloadView, { readonly difference: ConfigDifference }>;

function detailsText({ difference, warnings }: Compared): string {
  const { changes, restart, unchanged } = difference;
  let text = '';
  for (const kind of RESOURCE_KINDS) {
    text += `${kind}s: ${countsText(changes, kind, unchanged[kind])}\n`;
    for (const change of changes) if (change.kind === kind) text += changeText(change);
  }
  return text + section('needs a restart', restart.map(fieldText)) + section('warnings', warnings.map(formatProblem));
}

function possibleText({ changes, restart }: ConfigDifference): string {
  if (changes.length === 0 && restart.length === 0) return 'nothing differs';
  if (changes.length === 0) return 'dry run: what differs needs a restart';
  const parameters =
    restart.length === 0 ? 'apply=true applies it' : 'apply=true&partial=true applies what needs no restart';
  return `dry run, nothing has changed; ${parameters}`;
}

function countsText(changes: readonly ResourceChange[], kind: string, unchanged: number): string {
  const counts = (['added', 'changed', 'removed'] as const).map((change) => {
    const count = changes.filter((each) => each.kind === kind && each.change === change).length;
    return count === 0 ? '' : `${count} ${change}, `;
  });
  return `${counts.join('')}${unchanged} unchanged`;
}

const MARKS = { added: '+', changed: '~', removed: '-' } as const;

function changeText({ change, fieldCount, fields, name }: ResourceChange): string {
  const lines = fields.map((field) => `      ${fieldText(field)}\n`);
  if (fieldCount > fields.length) lines.push(`      and ${fieldCount - fields.length} further fields\n`);
  return `  ${MARKS[change]} ${name}\n${lines.join('')}`;
}

function fieldText({ after, before, path }: FieldChange): string {
  return `${path}: ${valueText(before)} → ${valueText(after)}`;
}

/** Maximum length of a shown value. */
const MAX_VALUE = 120;

function valueText(value: unknown): string {
  if (value === undefined) return 'not set';
  const text = JSON.stringify(value);
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text;
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${title}:\n${lines.map((line) => `  ${line.replaceAll('\n', '\n  ')}\n`).join('')}`;
}
