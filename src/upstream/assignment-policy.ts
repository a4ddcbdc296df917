// The policy of a load assignment (ClusterLoadAssignment.Policy) as plain data.

import { shareOf } from '../config/fields/fractional-percent.js';
import type { ClusterLoadAssignment } from '../config/generated/api.js';

export interface AssignmentPolicy {
  /** overprovisioning_factor in percent. */
  readonly overprovisioning: number;
  /** The health of a priority is that of its weights; false: of its number of hosts. */
  readonly weighsHealth: boolean;
  /** Undefined: no request is dropped. */
  readonly drop: OverloadDrop | undefined;
}

/** The share of a cluster's requests that is refused, as its control plane demands. */
export interface OverloadDrop {
  /** The name under which load reports count them. */
  readonly category: string;
  /** Above 0, at most 1. */
  readonly ratio: number;
}

export const DEFAULT_ASSIGNMENT_POLICY: AssignmentPolicy = {
  overprovisioning: 140,
  weighsHealth: false,
  drop: undefined,
};

/** Percent of the requests that may be dropped at most. */
export const DROP_LIMIT_KEY = 'load_balancing_policy.drop_overload_limit';

export function assignmentPolicy(assignment: ClusterLoadAssignment | undefined): AssignmentPolicy {
  const { policy } = assignment ?? {};
  if (policy === undefined) return DEFAULT_ASSIGNMENT_POLICY;
  const { drop_overloads: drops, overprovisioning_factor: factor, weighted_priority_health: weighsHealth } = policy;
  const [first] = drops ?? [];
  const ratio = Math.min(1, shareOf(first?.drop_percentage));
  return {
    overprovisioning: factor ?? DEFAULT_ASSIGNMENT_POLICY.overprovisioning,
    weighsHealth: weighsHealth ?? false,
    drop: ratio > 0 ? { category: first!.category ?? '', ratio } : undefined,
  };
}

/** Returns the policy with at most `limitPercent` of the requests dropped. */
export function limitDrop(policy: AssignmentPolicy, limitPercent: number): AssignmentPolicy {
  const { drop } = policy;
  const most = limitPercent / 100;
  if (drop === undefined || drop.ratio <= most) return policy;
  return { ...policy, drop: most > 0 ? { ...drop, ratio: most } : undefined };
}

export function isSamePolicy(a: AssignmentPolicy, b: AssignmentPolicy): boolean {
  return (
    a.overprovisioning === b.overprovisioning &&
    a.weighsHealth === b.weighsHealth &&
    a.drop?.category === b.drop?.category &&
    a.drop?.ratio === b.drop?.ratio
  );
}
