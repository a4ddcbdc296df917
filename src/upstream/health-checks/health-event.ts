// The events that the outcome of a health check causes for an event log, in Envoy's form (envoy.data.core.v3.HealthCheckEvent).

import type { HealthCheckEvent, HealthCheckFailureType } from '../../config/generated/api.js';
import type { Address } from '../../io/addresses/address.js';
import { DEGRADED_FLAGS, HealthFlag } from '../hosts/health-flags.js';
import type { ResolvedEndpoint } from '../hosts/host.js';
import type { HealthCheckSpec } from './health-check-spec.js';
import { hasPassed, Outcome } from './host-health.js';

/** The outcome of a check and what it has changed. */
export interface CheckResult {
  readonly outcome: Outcome;
  /** Status of the HTTP response; 0: none. */
  readonly status: number;
  /** It is the first one of the host. */
  readonly isFirst: boolean;
  /** HealthFlag bits of the host before and after it. */
  readonly before: number;
  readonly after: number;
}

/** What is special in an event, and where Envoy writes that: in the order of the fields' numbers. */
export interface EventDetails {
  readonly place: 'before the time' | 'after the time' | 'last';
  readonly fields: Omit<HealthCheckEvent, 'health_checker_type' | 'host' | 'cluster_name' | 'timestamp'>;
}

/** Returns the details of each event. */
export function healthEvents(result: CheckResult, spec: HealthCheckSpec): EventDetails[] {
  return hasPassed(result.outcome) ? passedEvents(result, spec) : failureEvents(result, spec);
}

function passedEvents({ after, before, isFirst }: CheckResult, { logsSuccesses }: HealthCheckSpec): EventDetails[] {
  const events: EventDetails[] = [];
  if (before & ~after & HealthFlag.FailedActiveHealthCheck)
    events.push({ place: 'before the time', fields: { add_healthy_event: { first_check: isFirst } } });
  else if (logsSuccesses) events.push({ place: 'last', fields: { successful_health_check_event: {} } });
  if (after & ~before & DEGRADED_FLAGS) events.push({ place: 'after the time', fields: { degraded_healthy_host: {} } });
  else if (before & ~after & DEGRADED_FLAGS)
    events.push({ place: 'after the time', fields: { no_longer_degraded_host: {} } });
  return events;
}

function failureEvents(result: CheckResult, { logsFailures }: HealthCheckSpec): EventDetails[] {
  const { after, before, isFirst, outcome, status: http_status_code } = result;
  const failure_type = failureType(outcome);
  const events: EventDetails[] = [];
  if (after & ~before & HealthFlag.FailedActiveHealthCheck)
    events.push({ place: 'before the time', fields: { eject_unhealthy_event: { failure_type, http_status_code } } });
  if (isFirst || logsFailures) {
    const health_check_failure_event = { failure_type, first_check: isFirst, http_status_code };
    events.push({ place: 'after the time', fields: { health_check_failure_event } });
  }
  return events;
}

function failureType(outcome: Outcome): HealthCheckFailureType {
  if (outcome === Outcome.FailedInTraffic) return 'PASSIVE';
  if (outcome === Outcome.NetworkFailure) return 'NETWORK';
  return outcome === Outcome.Timeout ? 'NETWORK_TIMEOUT' : 'ACTIVE';
}

/** Returns an event as JSON, with all fields, as Envoy writes it. */
export function eventText(
  { fields, place }: EventDetails,
  spec: HealthCheckSpec,
  cluster: string,
  { address, locality, metadata }: ResolvedEndpoint,
): string {
  const fieldsAt = (at: EventDetails['place']) => (place === at ? fields : undefined);
  return JSON.stringify({
    health_checker_type: CHECKER_TYPES[spec.check.kind],
    host: addressMessage(address),
    cluster_name: cluster,
    ...fieldsAt('before the time'),
    timestamp: new Date().toISOString(),
    ...fieldsAt('after the time'),
    metadata: metadata && { filter_metadata: metadata.filter_metadata ?? {}, typed_filter_metadata: {} },
    locality: { region: locality.region, zone: locality.zone, sub_zone: locality.subZone },
    ...fieldsAt('last'),
  });
}

const CHECKER_TYPES = { http: 'HTTP', tcp: 'TCP', grpc: 'GRPC', redis: 'REDIS' } as const;

function addressMessage({ ip, path, port }: Address): object {
  if (path !== '') return { pipe: { path, mode: 0 } };
  return {
    socket_address: {
      protocol: 'TCP',
      address: ip,
      port_value: port,
      resolver_name: '',
      ipv4_compat: false,
      network_namespace_filepath: '',
    },
  };
}
