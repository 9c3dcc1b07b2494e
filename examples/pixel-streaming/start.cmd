@echo off
rem Starts the packaged project on the GPU that the device plugin allocated to this container.
rem Environment: GAME_EXECUTABLE (such as Game.exe), SIGNALLING_URL (such as ws://signalling:8888), STREAMER_ID.
setlocal
if "%GAME_EXECUTABLE%"=="" echo error: GAME_EXECUTABLE is not set 1>&2 & exit /b 1
if "%SIGNALLING_URL%"=="" echo error: SIGNALLING_URL is not set 1>&2 & exit /b 1
if "%STREAMER_ID%"=="" echo error: STREAMER_ID is not set 1>&2 & exit /b 1
set ADAPTER=
for /f %%n in ('C:\app\graphics_adapter.exe') do set ADAPTER=%%n
if "%ADAPTER%"=="" exit /b 1
echo graphics adapter: %ADAPTER%
"C:\app\game\%GAME_EXECUTABLE%" -RenderOffscreen -Unattended -StdOut -FullStdOutLogOutput -graphicsadapter=%ADAPTER% -PixelStreamingURL=%SIGNALLING_URL% -PixelStreamingID=%STREAMER_ID%
