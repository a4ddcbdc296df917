// How an export gets to the collector.

export interface Exporter {
  /**
   * Sends an encoded ExportMetricsServiceRequest, in pieces. Gives the encoded response, or undefined when it is in no form that
   * could say more than that the export was taken. Rejects when it was not; once it is closed, it may reject or never settle.
   */
  export(request: readonly Uint8Array[]): Promise<Uint8Array | undefined>;
  /** Gives up exports that wait for their answer. */
  close(): void;
}
