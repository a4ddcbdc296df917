// The overload manager: each resource has one monitor, with the name that its stats have.

import { CONNECTION_MONITOR } from '../fields/connection-monitor.js';
import type { OverloadManager } from '../generated/api.js';
import type { Problems } from '../text/problems.js';
import { checkUnique } from './names/unique-names.js';

export function checkOverload(manager: OverloadManager | undefined, problems: Problems): void {
  const monitors = manager?.resource_monitors ?? [];
  const at = (index: number) => ['overload_manager', 'resource_monitors', index] as const;
  checkUnique(
    monitors.map((monitor) => monitor?.name),
    (index) => [...at(index), 'name'],
    'resource monitor',
    problems,
  );
  monitors.forEach((monitor, index) => {
    if (!monitor || monitor.name === CONNECTION_MONITOR || problems.has([...at(index), 'name'])) return;
    // It is the only implemented monitor; others have been refused.
    if (problems.has([...at(index), 'typed_config', '@type'])) return;
    problems.error([...at(index), 'name'], `the connection monitor must have the name '${CONNECTION_MONITOR}'`);
  });
}
