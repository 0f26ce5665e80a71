// Sound files as tensors: one channel, at a rate.

import { count } from "./try-types.js";

const MOST_SAMPLES = 1 << 26;

/** The samples of a sound file, -1 to 1, its channels joined to one. */
export async function readAudio(file, rate) {
  if (!(rate >= 3000 && rate <= 384000)) throw new Error("the rate must be 3000 to 384000 a second");
  const context = new OfflineAudioContext(1, 1, rate);
  const sound = await context.decodeAudioData(await file.arrayBuffer()).catch(() => {
    throw new Error(`${file.name} is not a sound that this browser can read`);
  });
  if (sound.length > MOST_SAMPLES) throw new Error(`${file.name} has more than ${MOST_SAMPLES} samples`);
  return joined(Array.from({ length: sound.numberOfChannels }, (_, channel) => sound.getChannelData(channel)));
}

/** The mean of channels. */
export function joined(channels) {
  return channels[0].map((_, at) => channels.reduce((sum, samples) => sum + samples[at], 0) / channels.length);
}

/** As many samples as a shape can hold, cut or with silence behind; `wanted` has `null` where any number will do. */
export function fitSamples(samples, wanted) {
  const known = Math.max(1, count(wanted.filter((dim) => dim !== null)));
  const size = wanted.includes(null) ? Math.ceil(samples.length / known) * known : known;
  const fitted = new Float32Array(size);
  fitted.set(samples.subarray(0, size));
  return fitted;
}

/** Samples as elements of a type: whole ones over the range of 16 bits. */
export function scaled(samples, isInteger) {
  return isInteger ? samples.map((value) => Math.max(-32768, Math.min(32767, Math.round(value * 32767)))) : samples;
}
