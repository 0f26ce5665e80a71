"""Names the package that brings a well-known module.

The source of both tables is the page of each package in the Python Package Index, which says how the package is imported.
A name that is not here is no reason to guess: the package of that name may be a stranger's.
"""

# Modules whose packages are called otherwise. A dotted name goes before what it begins with.
RENAMED = {
    "absl": "absl-py",
    "antlr4": "antlr4-python3-runtime",
    "apiclient": "google-api-python-client",
    "attr": "attrs",
    "azure.ai.ml": "azure-ai-ml",
    "azure.core": "azure-core",
    "azure.cosmos": "azure-cosmos",
    "azure.identity": "azure-identity",
    "azure.keyvault.secrets": "azure-keyvault-secrets",
    "azure.servicebus": "azure-servicebus",
    "azure.storage.blob": "azure-storage-blob",
    "azure.storage.filedatalake": "azure-storage-file-datalake",
    "azure.storage.queue": "azure-storage-queue",
    "bs4": "beautifulsoup4",
    "bson": "pymongo",
    "Bio": "biopython",
    "cairosvg": "CairoSVG",
    "cassandra": "cassandra-driver",
    "Crypto": "pycryptodome",
    "Cryptodome": "pycryptodomex",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "discord": "discord.py",
    "dns": "dnspython",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "PyMuPDF",
    "git": "GitPython",
    "github": "PyGithub",
    "gitlab": "python-gitlab",
    "google.api_core": "google-api-core",
    "google.auth": "google-auth",
    "google.cloud.aiplatform": "google-cloud-aiplatform",
    "google.cloud.bigquery": "google-cloud-bigquery",
    "google.cloud.firestore": "google-cloud-firestore",
    "google.cloud.logging": "google-cloud-logging",
    "google.cloud.pubsub_v1": "google-cloud-pubsub",
    "google.cloud.secretmanager": "google-cloud-secret-manager",
    "google.cloud.speech": "google-cloud-speech",
    "google.cloud.storage": "google-cloud-storage",
    "google.cloud.translate": "google-cloud-translate",
    "google.cloud.vision": "google-cloud-vision",
    "google.genai": "google-genai",
    "google.generativeai": "google-generativeai",
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "googleapiclient": "google-api-python-client",
    "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking",
    "grpc_reflection": "grpcio-reflection",
    "grpc_status": "grpcio-status",
    "grpc_tools": "grpcio-tools",
    "gridfs": "pymongo",
    "IPython": "ipython",
    "imblearn": "imbalanced-learn",
    "jose": "python-jose",
    "jwt": "PyJWT",
    "kafka": "kafka-python",
    "llama_cpp": "llama-cpp-python",
    "magic": "python-magic",
    "MeCab": "mecab-python3",
    "mpl_toolkits": "matplotlib",
    "mysql": "mysql-connector-python",
    "MySQLdb": "mysqlclient",
    "OpenGL": "PyOpenGL",
    "OpenSSL": "pyOpenSSL",
    "open_clip": "open-clip-torch",
    "opentelemetry": "opentelemetry-api",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "paddle": "paddlepaddle",
    "PIL": "pillow",
    "pkg_resources": "setuptools<81",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "pynvml": "nvidia-ml-py",
    "pyximport": "Cython",
    "pythonjsonlogger": "python-json-logger",
    "pywt": "PyWavelets",
    "rapidjson": "python-rapidjson",
    "ruamel.yaml": "ruamel.yaml",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "snappy": "python-snappy",
    "socks": "PySocks",
    "speech_recognition": "SpeechRecognition",
    "talib": "TA-Lib",
    "telegram": "python-telegram-bot",
    "turbojpeg": "PyTurboJPEG",
    "umap": "umap-learn",
    "usb": "pyusb",
    "whisper": "openai-whisper",
    "wx": "wxPython",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
}

# Modules whose packages are called as they are.
SAME = frozenset(
    """
    accelerate aiofiles aiohttp albumentations annoy anthropic asyncpg av bitsandbytes boto3 botocore cachetools catboost
    certifi cffi charset_normalizer click clickhouse_driver cloudpickle colorama confluent_kafka cryptography ctranslate2
    dask datasets decord deepspeed diffusers dill django duckdb easyocr einops elasticsearch fastapi faster_whisper fasttext
    filelock flask fsspec gensim gradio h5py hnswlib httpx huggingface_hub imagehash imageio jax jaxlib jinja2 joblib
    jsonschema keras keras_hub kornia langchain langchain_core langdetect Levenshtein librosa lightgbm lightning litellm
    llvmlite loguru lxml lz4 markdown matplotlib mediapipe mlflow msgpack networkx nltk nmslib numba numexpr numpy onnx
    onnxruntime onnxruntime_extensions openai OpenEXR openpyxl openvino optimum optuna orjson packaging pandas peft
    phonenumbers pika polars posthog prometheus_client prophet psutil psycopg pyarrow pycocotools pycurl pydantic
    pydantic_settings pydub pymongo pymysql pyparsing pypdf pytesseract pytorch_lightning pytz pyvips qdrant_client rapidfuzz
    redis regex requests rich sacremoses safetensors scipy seaborn sentence_transformers sentencepiece sentry_sdk setuptools
    shap shapely simplejson six sklearn_crfsuite sounddevice soundfile spacy sqlalchemy starlette statsmodels structlog sympy
    tabulate tenacity tensorboard tensorflow tensorflow_hub tensorflow_text tflite_runtime thinc tifffile tiktoken timm
    tokenizers toml torch torchaudio torchvision tqdm transformers treelite tritonclient typer typing_extensions ujson
    ultralytics unidecode urllib3 uvicorn vllm wandb websockets wordcloud xgboost xxhash zstandard
    """.split()
)

# Modules that only hold the modules of many packages.
SHARED = frozenset(("azure", "azure.storage", "google", "google.cloud", "ruamel"))


def package_of(name):
    """Returns the package that brings the module `name` (dotted), or nothing where that is not known."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if module in RENAMED:
            return RENAMED[module]
        if module in SHARED:
            return ""
    return parts[0].replace("_", "-") if parts[0] in SAME else ""
