package org.apache.hadoop.io.compress;

import com.aayushatharva.brotli4j.Brotli4jLoader;
import com.aayushatharva.brotli4j.decoder.BrotliInputStream;
import com.aayushatharva.brotli4j.encoder.BrotliOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** Brotli under the name that parquet-java asks Hadoop for; the codec itself is brotli4j's. */
public class BrotliCodec implements CompressionCodec {
  static {
    Brotli4jLoader.ensureAvailability();
  }

  @Override
  public CompressionOutputStream createOutputStream(OutputStream out) throws IOException {
    BrotliOutputStream brotli = new BrotliOutputStream(out);
    return new CompressionOutputStream(out) {
      @Override
      public void write(int value) throws IOException {
        brotli.write(value);
      }

      @Override
      public void write(byte[] bytes, int from, int count) throws IOException {
        brotli.write(bytes, from, count);
      }

      @Override
      public void finish() throws IOException {
        brotli.close();
      }

      @Override
      public void resetState() {}
    };
  }

  @Override
  public CompressionOutputStream createOutputStream(OutputStream out, Compressor compressor) throws IOException {
    return createOutputStream(out);
  }

  @Override
  public Class<? extends Compressor> getCompressorType() {
    return null;
  }

  @Override
  public Compressor createCompressor() {
    return null;
  }

  @Override
  public CompressionInputStream createInputStream(InputStream in) throws IOException {
    BrotliInputStream brotli = new BrotliInputStream(in);
    return new CompressionInputStream(in) {
      @Override
      public int read() throws IOException {
        return brotli.read();
      }

      @Override
      public int read(byte[] bytes, int from, int count) throws IOException {
        return brotli.read(bytes, from, count);
      }

      @Override
      public void resetState() {}
    };
  }

  @Override
  public CompressionInputStream createInputStream(InputStream in, Decompressor decompressor) throws IOException {
    return createInputStream(in);
  }

  @Override
  public Class<? extends Decompressor> getDecompressorType() {
    return null;
  }

  @Override
  public Decompressor createDecompressor() {
    return null;
  }

  @Override
  public String getDefaultExtension() {
    return ".br";
  }
}
