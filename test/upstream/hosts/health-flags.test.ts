import t from 'tap';
import { endpointHealthFlags, HealthFlag, healthFlagsText } from '../../../src/upstream/hosts/health-flags.js';

t.test('flags are formatted as in /clusters', async (t) => {
  t.equal(healthFlagsText(0), 'healthy');
  t.equal(
    healthFlagsText(HealthFlag.EdsStatusDraining | HealthFlag.FailedActiveHealthCheck),
    '/failed_active_hc/eds_status_draining',
  );
  t.equal(healthFlagsText(HealthFlag.ActiveHealthCheckTimeout), '/active_hc_timeout');
  t.equal(healthFlagsText(endpointHealthFlags('UNHEALTHY')), '/failed_eds_health');
  t.equal(healthFlagsText(endpointHealthFlags('DEGRADED')), '/degraded_eds_health');
  t.equal(healthFlagsText(endpointHealthFlags(undefined)), 'healthy');
});
