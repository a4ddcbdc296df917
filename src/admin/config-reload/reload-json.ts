// The result of a configuration reload as JSON for programs.

import type { Problem } from '../../config/text/problem.js';
import type { JsonObject, JsonValue } from '../json.js';
import { type ConfigDifference, type FieldChange, RESOURCE_KINDS, type ReloadView } from './reload-view.js';

/** Names of outcomes: busy, invalid, unread, failed, needs_restart, possible, applied. */
export function reloadJson(view: ReloadView): JsonObject {
  const outcome = view.outcome.replace('-', '_');
  if (view.outcome === 'busy') return { outcome };
  if (view.outcome === 'unread') return { outcome, why: view.why };
  return {
    outcome,
    ...(view.outcome === 'failed' && { why: view.why, undone: view.isUndone }),
    ...(view.outcome === 'invalid' ? { errors: view.errors.map(problemJson) } : differenceJson(view.difference)),
    warnings: view.warnings.map(problemJson),
  };
}

function differenceJson({ changes, restart, unchanged }: ConfigDifference): JsonObject {
  return {
    changes: changes.map(({ change, fieldCount, fields, kind, name }) => ({
      kind: snake(kind),
      name,
      change,
      ...(change === 'changed' && { fields: fields.map(fieldJson), field_count: fieldCount }),
    })),
    unchanged: Object.fromEntries(RESOURCE_KINDS.map((kind) => [snake(kind), unchanged[kind]])),
    needs_restart: restart.map(fieldJson),
  };
}

/** Absent values have no member. */
function fieldJson({ after, before, path }: FieldChange): JsonObject {
  return { path, before: before as JsonValue, after: after as JsonValue };
}

function problemJson({ column, line, message, path, source }: Problem): JsonObject {
  return { source, line, column, path, message };
}

function snake(kind: string): string {
  return kind.replace(' ', '_');
}
