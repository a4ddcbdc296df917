// A real Prometheus server that scrapes one address.

import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { endsWithTest, freePort, httpRequest, type Teardown, tempDir, waitFor } from '../../harness/index.js';

export interface PrometheusOptions {
  /** The program. */
  readonly path: string;
  /** Port of 127.0.0.1 to scrape. */
  readonly target: number;
  readonly metricsPath: string;
  readonly parameters?: Readonly<Record<string, readonly string[]>>;
  readonly args?: readonly string[];
}

/** A series of the API's response: its value as text, or a native histogram. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value?: readonly [number, string];
  readonly histogram?: readonly [number, { readonly count: string; readonly sum: string }];
}

export class Prometheus {
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Returns the current result of a query. Throws an Error for a query that fails. */
  async query(query: string): Promise<Series[]> {
    const { status, body } = await httpRequest(this.#port, `/api/v1/query?query=${encodeURIComponent(query)}`);
    if (status !== 200) throw new Error(`${query}: ${body}`);
    return JSON.parse(body).data.result;
  }
}

/** Starts Prometheus, and kills it when the test ends. Resolves after the first scrape. Throws with its log. */
export async function startPrometheus(t: Teardown, options: PrometheusOptions): Promise<Prometheus> {
  const directory = tempDir(t);
  const port = await freePort();
  const { metricsPath, parameters = {}, target } = options;
  const config = {
    global: { scrape_interval: '500ms', scrape_timeout: '500ms' },
    scrape_configs: [
      {
        job_name: 'baton',
        metrics_path: metricsPath,
        params: parameters,
        static_configs: [{ targets: [`127.0.0.1:${target}`] }],
      },
    ],
  };
  const configPath = join(directory, 'prometheus.json');
  writeFileSync(configPath, JSON.stringify(config));
  const child = spawn(options.path, [
    `--config.file=${configPath}`,
    `--storage.tsdb.path=${join(directory, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    ...(options.args ?? []),
  ]);
  const log = collect(endsWithTest(t, child));
  const prometheus = new Prometheus(port);
  const isUp = async () => (await prometheus.query('up{job="baton"}'))[0]?.value?.[1] === '1';
  await waitFor(isUp, { what: 'a scrape by Prometheus', deadlineMs: 40_000 }).catch((error: unknown) => {
    throw new Error(`Prometheus has not scraped Baton; its log:\n${log()}`, { cause: error });
  });
  return prometheus;
}

function collect(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  return () => text;
}
