from synmask.pipeline.cli import main

main()
