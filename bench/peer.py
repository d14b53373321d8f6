"""What the comparisons share: the peer, built once from the source distribution of the Python package llama-cpp-python (it contains
llama.cpp) into the cache folder, which takes some minutes; the models; the machine in words."""
import os
import pathlib
import platform
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path.home() / ".cache/minfer"
PACKAGE = "llama-cpp-python==0.3.36"
FLAGS = ["-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_CURL=OFF", "-DGGML_NATIVE=ON", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DBUILD_SHARED_LIBS=OFF"]
MODELS = {"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf", "qwen": "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"}


def build(programs):
    """The folder with the peer's programs."""
    folder = CACHE / "peer/build"
    if all((folder / "bin" / p).exists() for p in programs):
        return folder / "bin"
    source = CACHE / "peer/source"
    if not any(source.glob("*/vendor/llama.cpp")):
        source.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as tmp:
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", PACKAGE.split("==")[0], "-d", tmp, PACKAGE], check=True)
            with tarfile.open(next(pathlib.Path(tmp).glob("*.tar.gz"))) as t:
                t.extractall(source)
    tree = next(source.glob("*/vendor/llama.cpp"))
    subprocess.run(["cmake", "-S", tree, "-B", folder, *FLAGS], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "-j", str(os.cpu_count()), "--target", *programs], check=True, stdout=subprocess.DEVNULL)
    return folder / "bin"


def model_dir():
    home = os.environ.get("MINFER_MODEL_DIR")
    return pathlib.Path(home) if home else CACHE / "models"


def cpu_name():
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def isa():
    flags = next(line for line in open("/proc/cpuinfo") if line.startswith("flags")).split()
    return "AVX-512 VNNI" if "avx512_vnni" in flags else "AVX2" if "avx2" in flags else "no AVX2"
