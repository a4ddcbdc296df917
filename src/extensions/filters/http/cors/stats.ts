// Scope `http.<stat_prefix>.cors.`: what the CORS filter thought of origins.

import { defineLayout } from '../../../sdk.js';

export const CorsStats = defineLayout({ origin_valid: 'counter', origin_invalid: 'counter' });
