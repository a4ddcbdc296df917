// Implemented fields of the file of --route-tests.

import { ALL, type ImplementedTable } from '../../config/implemented/table.js';

export const ROUTE_TEST_FIELDS = {
  'baton.route_tests.v1.RouteTests': ALL,
  'baton.route_tests.v1.RouteTest': ALL,
  'baton.route_tests.v1.RouteTest.Input': ALL,
  'baton.route_tests.v1.RouteTest.Expectation': ALL,
} satisfies ImplementedTable;
